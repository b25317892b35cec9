// What servers share.

/** Certificate and key of a secure server. */
export function identity(job) {
  return { cert: job.certificate_pem, key: job.private_key_pem };
}

/** Listens where the job says. */
export function listen(server, { address, port }) {
  return new Promise((resolve, reject) => {
    server.once("error", reject);
    server.listen({ host: address, port, backlog: 1024 }, resolve);
  });
}
