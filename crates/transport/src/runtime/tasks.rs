//! A connection's tasks.

use std::future::Future;
use tokio::task::JoinHandle;

/// A connection's tasks, aborted on drop.
#[derive(Default)]
pub(crate) struct Tasks(Vec<JoinHandle<()>>);

impl Tasks {
    pub(crate) fn spawn(&mut self, task: impl Future<Output = ()> + Send + 'static) {
        self.0.push(tokio::spawn(task));
    }

    /// Takes a task started by a library.
    pub(crate) fn add(&mut self, task: JoinHandle<()>) {
        self.0.push(task);
    }

    pub(crate) fn abort(&self) {
        self.0.iter().for_each(JoinHandle::abort);
    }

    pub(crate) async fn ended(&mut self) {
        while let Some(task) = self.0.last_mut() {
            // An aborted task has ended as well.
            let _ = task.await;
            self.0.pop();
        }
    }
}

impl Drop for Tasks {
    fn drop(&mut self) {
        self.abort();
    }
}
