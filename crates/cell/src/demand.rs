//! Inputs of a cell's forecast: its path's effect on traffic, and its workload's traffic.

use crate::Flow;
use crate::flow::traffic;
use crosswind_path::{Effect, PathConfig, Side};
use crosswind_transport::Resumption;
use crosswind_workload::{TrafficPattern, WorkloadConfig};
use schemars::JsonSchema;
use serde::Serialize;

/// What a cell asks of its path.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Demand {
    /// Bound on one exchange.
    pub timeout_ns: Option<u64>,
    /// What the path does to traffic from client to server.
    pub forward: Effect,
    /// What the path does to traffic from server to client.
    pub reverse: Effect,
    /// What the workload sends.
    pub traffic: TrafficPattern,
    /// What flows beside it send.
    pub flows: Vec<TrafficPattern>,
    /// Whether Socket.IO begins with HTTP long polling.
    pub polling: bool,
    /// Whether connections carry data in their first flight.
    pub early_data: bool,
}

impl Demand {
    /// The demand of `workload` on `path`.
    pub fn new(path: &PathConfig, workload: &WorkloadConfig, flows: &[Flow]) -> Self {
        let needs = workload.connections();
        Self {
            timeout_ns: workload.timeout().map(|timeout| timeout.as_nanos() as u64),
            forward: path.effect(Side::Forward),
            reverse: path.effect(Side::Reverse),
            traffic: workload.traffic(),
            flows: traffic(flows),
            polling: needs.is_some_and(|needs| needs.polling),
            early_data: needs.is_some_and(|needs| needs.resumption == Resumption::EarlyData),
        }
    }
}
