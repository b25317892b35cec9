//! Connect: connections are set up, and each is closed at once.

use crate::answers::Answers;
use crate::client::Client;
use crate::client_server::ClientServer;
use crate::demand::TrafficPattern;
use crate::exchange::Exchange;
use crate::message::Messages;
use crate::needs::ConnectionNeeds;
use crate::workload::{
    MAX_CONNECTIONS, MAX_COUNT, MAX_TIMEOUT_NS, MIN_TIMEOUT_NS, PathFacts, TIMEOUT_HELP, Workload, WorkloadSettings,
    default_timeout_ns, number, small,
};
use crate::{Sample, WorkloadError};
use crosswind_host::Clock;
use crosswind_transport::{Features, Payload, Resumption, TransportRef};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Connections that are set up and closed again.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Connect {
    /// Transport whose connections are set up.
    #[schemars(with = "String", extend("kind" = "transport", "default" = "tcp"))]
    pub transport: TransportRef,
    /// Connections in all.
    #[serde(default = "number::<100>")]
    #[schemars(range(min = 1, max = MAX_COUNT))]
    pub count: u64,
    /// What later connections resume: none, session (a TLS ticket), or 0-rtt (data in the first flight).
    #[serde(default)]
    pub resumption: Resumption,
    /// Whether Socket.IO begins with HTTP long polling and upgrades.
    #[serde(default)]
    pub polling: bool,
    /// Connections that are set up side by side.
    #[serde(default = "small::<1>")]
    #[schemars(range(min = 1, max = MAX_CONNECTIONS))]
    pub connections: u32,
    /// How long setting up one connection may take.
    #[serde(default)]
    #[schemars(range(min = MIN_TIMEOUT_NS, max = MAX_TIMEOUT_NS), extend("default_help" = TIMEOUT_HELP))]
    pub timeout_ns: Option<u64>,
}

impl WorkloadSettings for Connect {
    const KIND: &'static str = "connect";
    const SAMPLE: &'static str = "one connection set up";

    fn fits(features: &Features) -> bool {
        // A socket for plain datagrams sets nothing up.
        features.setup_round_trips > 0
    }

    fn fill_in(&mut self, path: &PathFacts) {
        self.timeout_ns.get_or_insert(default_timeout_ns(self.transport, path));
    }
}

impl Workload for Connect {
    fn connections(&self) -> Option<ConnectionNeeds> {
        Some(self.needs())
    }

    fn exchanges(&self) -> u64 {
        self.count
    }

    fn traffic(&self) -> TrafficPattern {
        TrafficPattern::Handshakes { count: self.count, connections: self.connections }
    }
}

impl ClientServer for Connect {
    type Server = Answers;

    fn needs(&self) -> ConnectionNeeds {
        ConnectionNeeds {
            resumption: self.resumption,
            polling: self.polling,
            ..ConnectionNeeds::plain(self.transport, self.timeout_ns)
        }
    }

    fn clients(&self) -> u32 {
        self.connections
    }

    fn server(&self, clock: Clock) -> Answers {
        Answers::new(clock, self.sizes(), Messages { payload: Payload::Binary })
    }

    async fn client(&self, client: &Client<'_>) -> Result<Vec<Exchange>, WorkloadError> {
        let mut exchanges = Vec::new();
        for number in client.numbers(self.count, self.connections).take_while(|_| !client.is_over()) {
            exchanges.push(set_up(client, number).await);
        }
        Ok(exchanges)
    }
}

async fn set_up(client: &Client<'_>, number: u64) -> Exchange {
    let mut sample = Sample::new(number, client.number);
    sample.sent = Some(client.context.clock().now());
    let result = match client.open().await {
        Ok(mut opened) => {
            opened.note_phases(&mut sample);
            if client.needs.resumption != Resumption::None {
                // Without the ticket from this exchange the next connection has nothing to resume.
                let _ = client.settle(opened.connection.as_ref()).await;
            }
            client.close(opened.connection.as_mut()).await;
            Ok(())
        }
        Err(error) => {
            sample.failed = Some(client.context.clock().now());
            Err(error)
        }
    };
    client.context.progress.exchange_done(sample.setup.map(|setup| setup.total_ns));
    Exchange::new(sample, result)
}
