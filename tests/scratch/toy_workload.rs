//! A toy: connections are set up one after the other, and each is closed at once.

use crate::answers::Answers;
use crate::client::Client;
use crate::client_server::ClientServer;
use crate::demand::TrafficPattern;
use crate::exchange::Exchange;
use crate::message::Messages;
use crate::needs::ConnectionNeeds;
use crate::workload::{PathFacts, Workload, WorkloadSettings, default_timeout_ns, number};
use crate::{Sample, WorkloadError};
use crosswind_host::Clock;
use crosswind_transport::{Features, Payload, TransportRef};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Connections that are set up and closed again.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Toy {
    /// Transport whose connections are set up.
    #[schemars(with = "String", extend("kind" = "transport", "default" = "tcp"))]
    pub transport: TransportRef,
    /// Connections in all.
    #[serde(default = "number::<3>")]
    #[schemars(range(min = 1, max = 1000))]
    pub toys: u64,
    /// How long setting up one connection may take.
    #[serde(default)]
    #[schemars(range(min = 1_000, max = 3_600_000_000_000_u64), extend("default_help" = "60s"))]
    pub timeout_ns: Option<u64>,
}

impl WorkloadSettings for Toy {
    const KIND: &'static str = "toy";
    const SAMPLE: &'static str = "one connection set up";

    fn fits(features: &Features) -> bool {
        features.setup_round_trips > 0
    }

    fn fill_in(&mut self, path: &PathFacts) {
        self.timeout_ns.get_or_insert(default_timeout_ns(self.transport, path));
    }
}

impl Workload for Toy {
    fn connections(&self) -> Option<ConnectionNeeds> {
        Some(self.needs())
    }

    fn exchanges(&self) -> u64 {
        self.toys
    }

    fn traffic(&self) -> TrafficPattern {
        TrafficPattern::Handshakes { count: self.toys, connections: 1 }
    }
}

impl ClientServer for Toy {
    type Server = Answers;

    fn needs(&self) -> ConnectionNeeds {
        ConnectionNeeds::plain(self.transport, self.timeout_ns)
    }

    fn server(&self, clock: Clock) -> Answers {
        Answers::new(clock, self.sizes(), Messages { payload: Payload::Binary })
    }

    async fn client(&self, client: &Client<'_>) -> Result<Vec<Exchange>, WorkloadError> {
        let mut exchanges = Vec::new();
        for number in 0..self.toys {
            let mut sample = Sample::new(number, client.number);
            sample.sent = Some(client.context.clock().now());
            let result = match client.open().await {
                Ok(mut opened) => {
                    opened.note_phases(&mut sample);
                    client.close(opened.connection.as_mut()).await;
                    Ok(())
                }
                Err(error) => Err(error),
            };
            client.context.progress.exchange_done(sample.setup.map(|setup| setup.total_ns));
            exchanges.push(Exchange::new(sample, result));
        }
        Ok(exchanges)
    }
}
