/* The smallest blocking echo program: the reference for Crosswind's echo.
 *
 *   ping_pong tcp|udp server               answers until killed
 *   ping_pong tcp|udp ADDRESS COUNT        prints the median round trip of one byte, in nanoseconds
 */
#include <arpa/inet.h>
#include <netinet/tcp.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

enum { PORT = 9000 };

static void check(int result, const char *what) {
    if (result < 0) {
        perror(what);
        exit(1);
    }
}

static int64_t now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec * 1000000000LL + t.tv_nsec;
}

static int by_size(const void *a, const void *b) {
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return (x > y) - (x < y);
}

static void serve(int tcp, int s) {
    struct sockaddr_in peer;
    char byte;
    if (!tcp) {
        for (;;) {
            socklen_t length = sizeof peer;
            check(recvfrom(s, &byte, 1, 0, (struct sockaddr *)&peer, &length), "recvfrom");
            check(sendto(s, &byte, 1, 0, (struct sockaddr *)&peer, length), "sendto");
        }
    }
    check(listen(s, 1), "listen");
    int c = accept(s, NULL, NULL), on = 1;
    check(c, "accept");
    setsockopt(c, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    while (recv(c, &byte, 1, 0) == 1) check(send(c, &byte, 1, 0), "send");
}

int main(int argc, char **argv) {
    if (argc < 3) {
        fprintf(stderr, "usage: ping_pong tcp|udp server | ping_pong tcp|udp ADDRESS COUNT\n");
        return 2;
    }
    int tcp = !strcmp(argv[1], "tcp"), on = 1;
    int s = socket(AF_INET, tcp ? SOCK_STREAM : SOCK_DGRAM, 0);
    check(s, "socket");
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons(PORT)};
    if (argc == 3) {
        check(bind(s, (struct sockaddr *)&address, sizeof address), "bind");
        serve(tcp, s);
        return 0;
    }
    int count = atoi(argv[3]);
    int64_t *took = calloc(count, sizeof *took);
    inet_pton(AF_INET, argv[2], &address.sin_addr);
    if (tcp) setsockopt(s, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    check(connect(s, (struct sockaddr *)&address, sizeof address), "connect");
    for (int i = 0; i < count; i++) {
        char byte = (char)i;
        int64_t sent = now();
        check(send(s, &byte, 1, 0), "send");
        check(recv(s, &byte, 1, 0), "recv");
        took[i] = now() - sent;
    }
    qsort(took, count, sizeof *took, by_size);
    printf("%lld\n", (long long)took[count / 2]);
    return 0;
}
