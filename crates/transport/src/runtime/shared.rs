//! One object polled by several tasks: a connection, by the sending task, the receiving task, and the closing one.

use crate::TransportError;
use crate::error::Outcome;
use std::future::poll_fn;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Wake, Waker};

/// A task's reason to poll the object. Each role has at most one task at a time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Role {
    Sender,
    Receiver,
    Closer,
}

/// A handle on `T`. Ending it drops `T` for all handles, and wakes the waiting tasks.
///
/// Sockets and streams remember one task for each direction, but receiving may have to write (an answer to a ping) and
/// sending to read (a handshake). So all of them remember the same waker, which wakes every task waiting here.
pub(crate) struct Shared<T>(Arc<Inner<T>>);

struct Inner<T> {
    /// After the end: the outcome for later users.
    value: Mutex<Result<T, Outcome>>,
    waiting: Arc<Waiting>,
    /// The waker for `waiting`.
    waker: Waker,
}

/// The waiting tasks, by role.
#[derive(Default)]
struct Waiting(Mutex<[Option<Waker>; 3]>);

impl Wake for Waiting {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        let tasks = lock(&self.0).clone();
        tasks.into_iter().flatten().for_each(Waker::wake);
    }
}

impl<T> Clone for Shared<T> {
    fn clone(&self) -> Self {
        Self(Arc::clone(&self.0))
    }
}

impl<T> Shared<T> {
    pub(crate) fn new(value: T) -> Self {
        let waiting = Arc::new(Waiting::default());
        let waker = Arc::clone(&waiting).into();
        Self(Arc::new(Inner { value: Mutex::new(Ok(value)), waiting, waker }))
    }

    /// Polls `call` until it is ready.
    pub(crate) async fn poll<R>(
        &self,
        role: Role,
        what: &'static str,
        mut call: impl FnMut(&mut T, &mut Context<'_>) -> Poll<Result<R, TransportError>>,
    ) -> Result<R, TransportError> {
        let waiting = WaitingTask { tasks: &self.0.waiting, role };
        poll_fn(|context| {
            waiting.remember(context.waker());
            match &mut *lock(&self.0.value) {
                Ok(value) => call(value, &mut Context::from_waker(&self.0.waker)),
                Err(outcome) => Poll::Ready(Err(ended(what, *outcome))),
            }
        })
        .await
    }

    /// Looks at it. The error says how it ended.
    pub(crate) fn with<R>(
        &self,
        what: &'static str,
        look: impl FnOnce(&mut T) -> Result<R, TransportError>,
    ) -> Result<R, TransportError> {
        match &mut *lock(&self.0.value) {
            Ok(value) => look(value),
            Err(outcome) => Err(ended(what, *outcome)),
        }
    }

    /// Takes it away from all handles; every call in progress and every later one fails with `outcome`.
    pub(crate) fn end(&self, outcome: Outcome) -> Option<T> {
        let value = {
            let mut value = lock(&self.0.value);
            if value.is_err() {
                return None;
            }
            std::mem::replace(&mut *value, Err(outcome))
        };
        self.0.waker.wake_by_ref();
        value.ok()
    }
}

/// A waiting task, until its call is ready or is dropped.
struct WaitingTask<'a> {
    tasks: &'a Waiting,
    role: Role,
}

impl WaitingTask<'_> {
    fn remember(&self, waker: &Waker) {
        let task = &mut lock(&self.tasks.0)[self.role as usize];
        match task {
            Some(known) => known.clone_from(waker),
            None => *task = Some(waker.clone()),
        }
    }
}

impl Drop for WaitingTask<'_> {
    fn drop(&mut self) {
        lock(&self.tasks.0)[self.role as usize] = None;
    }
}

/// Also after another thread's panic.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

fn ended(what: &'static str, outcome: Outcome) -> TransportError {
    let cause = if outcome == Outcome::Closed { "the connection was closed" } else { "the connection was dropped" };
    TransportError::with(what, outcome, cause)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::pin::pin;
    use std::sync::atomic::{AtomicUsize, Ordering};

    /// A task counting its wake-ups.
    #[derive(Default)]
    struct Task(AtomicUsize);

    impl Wake for Task {
        fn wake(self: Arc<Self>) {
            self.0.fetch_add(1, Ordering::Relaxed);
        }
    }

    impl Task {
        fn poll<T>(self: &Arc<Self>, call: impl Future<Output = T>) -> Poll<T> {
            pin!(call).poll(&mut Context::from_waker(&Arc::clone(self).into()))
        }

        fn woken(&self) -> usize {
            self.0.load(Ordering::Relaxed)
        }
    }

    /// Remembers the last waker, as a socket does.
    type Socket = Option<Waker>;

    #[allow(clippy::unnecessary_wraps)] // the signature for `Shared::poll`
    fn wait(socket: &mut Socket, context: &mut Context<'_>) -> Poll<Result<(), TransportError>> {
        *socket = Some(context.waker().clone());
        Poll::Pending
    }

    #[test]
    fn every_task_that_waits_is_woken_though_the_socket_remembers_one() {
        let shared = Shared::new(Socket::None);
        let [sender, receiver] = [(); 2].map(|()| Arc::new(Task::default()));
        let mut sending = pin!(shared.poll(Role::Sender, "", wait));
        let mut receiving = pin!(shared.poll(Role::Receiver, "", wait));
        assert!(sender.poll(sending.as_mut()).is_pending());
        assert!(receiver.poll(receiving.as_mut()).is_pending());
        let waker = shared.with("", |socket| Ok(socket.clone().unwrap())).unwrap();
        waker.wake();
        assert_eq!((sender.woken(), receiver.woken()), (1, 1));
    }

    #[test]
    fn a_call_that_was_dropped_is_not_woken() {
        let shared = Shared::new(Socket::None);
        let task = Arc::new(Task::default());
        assert!(task.poll(shared.poll(Role::Sender, "", wait)).is_pending());
        shared.with("", |socket| Ok(socket.clone().unwrap())).unwrap().wake();
        assert_eq!(task.woken(), 0);
    }

    #[test]
    fn its_end_is_the_end_of_every_call() {
        let shared = Shared::new(Socket::None);
        let task = Arc::new(Task::default());
        let mut receiving = pin!(shared.poll(Role::Receiver, "cannot receive", wait));
        assert!(task.poll(receiving.as_mut()).is_pending());
        assert!(shared.clone().end(Outcome::Reset).is_some());
        assert_eq!(task.woken(), 1);
        let Poll::Ready(Err(ended)) = task.poll(receiving.as_mut()) else { panic!("it still waits") };
        assert_eq!(ended.outcome, Outcome::Reset);
        assert!(shared.end(Outcome::Closed).is_none());
        assert_eq!(shared.with("", |_| Ok(())).unwrap_err().outcome, Outcome::Reset);
    }
}
