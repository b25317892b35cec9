//! The tasks that drive one connection.

use std::future::{Future, poll_fn};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::task::{Poll, ready};
use tokio::task::JoinSet;

/// The tasks of a connection. They are aborted when this is dropped.
#[derive(Default)]
pub(crate) struct Tasks(Arc<Mutex<JoinSet<()>>>);

/// Starts further tasks of a connection.
#[derive(Clone)]
pub(crate) struct Executor(Weak<Mutex<JoinSet<()>>>);

impl Tasks {
    pub(crate) fn spawn(&self, task: impl Future<Output = ()> + Send + 'static) {
        spawn(&self.0, task);
    }

    pub(crate) fn executor(&self) -> Executor {
        Executor(Arc::downgrade(&self.0))
    }

    pub(crate) fn abort(&self) {
        lock(&self.0).abort_all();
    }

    /// Waits until all of them have ended.
    pub(crate) async fn ended(&self) {
        poll_fn(|context| {
            while ready!(lock(&self.0).poll_join_next(context)).is_some() {}
            Poll::Ready(())
        })
        .await;
    }
}

impl Executor {
    /// Without its connection a task has nothing left to do, and is dropped.
    pub(crate) fn spawn(&self, task: impl Future<Output = ()> + Send + 'static) {
        if let Some(tasks) = self.0.upgrade() {
            spawn(&tasks, task);
        }
    }
}

impl<F: Future<Output = ()> + Send + 'static> hyper::rt::Executor<F> for Executor {
    fn execute(&self, task: F) {
        self.spawn(task);
    }
}

fn spawn(tasks: &Mutex<JoinSet<()>>, task: impl Future<Output = ()> + Send + 'static) {
    let mut tasks = lock(tasks);
    // The set keeps those that have ended until somebody asks for them.
    while tasks.try_join_next().is_some() {}
    tasks.spawn(task);
}

fn lock(tasks: &Mutex<JoinSet<()>>) -> MutexGuard<'_, JoinSet<()>> {
    tasks.lock().unwrap_or_else(PoisonError::into_inner)
}
