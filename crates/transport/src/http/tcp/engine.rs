//! What drives HTTP over TCP: whoever waits for something of the connection. A task of its own would have to wake them, and they
//! it, for every request.

use super::link::Fate;
use super::{Version, errors};
use crate::TransportError;
use futures_util::stream::{FuturesUnordered, StreamExt};
use std::future::{Future, poll_fn};
use std::pin::{Pin, pin};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Wake, Waker};

/// How often who waits takes a turn before others of the reactor have theirs.
const MOST_TURNS: usize = 8;

type Work = Pin<Box<dyn Future<Output = ()> + Send>>;

/// Where hyper puts what it does besides, most of it for each request of HTTP/2.
#[derive(Clone, Default)]
pub(super) struct Works(Arc<Mutex<Vec<Work>>>);

impl Works {
    pub(super) fn take(&self) -> Vec<Work> {
        std::mem::take(&mut lock(&self.0))
    }
}

impl<F: Future<Output = ()> + Send + 'static> hyper::rt::Executor<F> for Works {
    fn execute(&self, work: F) {
        lock(&self.0).push(Box::pin(work));
    }
}

/// A connection of hyper's, and how it is asked to wind up.
pub(super) trait Driven: Send {
    fn poll(&mut self, context: &mut Context<'_>) -> Poll<hyper::Result<()>>;
    fn wind_up(&mut self);
}

/// Either end's, of either version.
pub(super) struct Of<C> {
    pub(super) connection: Pin<Box<C>>,
    pub(super) wind_up: fn(Pin<&mut C>),
}

impl<C: Future<Output = hyper::Result<()>> + Send> Driven for Of<C> {
    fn poll(&mut self, context: &mut Context<'_>) -> Poll<hyper::Result<()>> {
        self.connection.as_mut().poll(context)
    }

    fn wind_up(&mut self) {
        (self.wind_up)(self.connection.as_mut());
    }
}

/// The connection, as long as it is not over.
#[derive(Clone)]
pub(super) struct Engine(Arc<Inner>);

struct Inner {
    running: Mutex<Option<Running>>,
    bell: Arc<Bell>,
    /// Of the bell.
    waker: Waker,
    fate: Fate,
}

/// What came of a turn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Turn {
    /// There was nothing to do.
    Idle,
    /// The connection went as far as it could.
    Taken,
    /// The connection is over.
    Over,
}

struct Running {
    connection: Box<dyn Driven>,
    version: Version,
    new: Works,
    works: FuturesUnordered<Work>,
}

impl Engine {
    /// Drives `connection`, whose requests' work comes in `works`, to its `fate`.
    pub(super) fn new(connection: Box<dyn Driven>, version: Version, works: Works, fate: Fate) -> Self {
        let running = Running { connection, version, new: works, works: FuturesUnordered::new() };
        let bell = Arc::new(Bell { rung: AtomicBool::new(true), ..Bell::default() });
        let waker = Arc::clone(&bell).into();
        Self(Arc::new(Inner { running: Mutex::new(Some(running)), bell, waker, fate }))
    }

    /// As far as it goes now.
    pub(super) fn turn(&self) -> Turn {
        let Inner { running, bell, waker, fate } = &*self.0;
        if bell.over.load(Ordering::Acquire) {
            return Turn::Over;
        }
        if !bell.rung.swap(false, Ordering::AcqRel) {
            return Turn::Idle;
        }
        let mut running = lock(running);
        if let Some(one) = running.as_mut() {
            let Poll::Ready(end) = one.poll(&mut Context::from_waker(waker)) else { return Turn::Taken };
            fate.seal(errors::end(end, one.version, fate));
        }
        let ended = running.take();
        drop(running);
        // What is dropped may wake somebody who looks here.
        drop(ended);
        bell.ring_for_the_last_time();
        Turn::Over
    }

    /// Somebody who waits.
    pub(super) const fn waiter(&self) -> Waiter<'_> {
        Waiter { engine: self, number: None }
    }

    fn bell(&self) -> &Bell {
        &self.0.bell
    }

    /// `wanted`, which the connection brings.
    pub(super) async fn until<T>(
        &self,
        wanted: impl Future<Output = Result<T, TransportError>>,
    ) -> Result<T, TransportError> {
        let (mut wanted, mut waiter) = (pin!(wanted), self.waiter());
        poll_fn(|context| waiter.drive(context, |context, _| wanted.as_mut().poll(context))).await
    }

    /// Lets what is under way come to its end.
    pub(super) async fn wind_up(&self) {
        if let Some(running) = lock(&self.0.running).as_mut() {
            running.connection.wind_up();
        }
        self.0.waker.wake_by_ref();
        let mut waiter = self.waiter();
        poll_fn(|context| {
            waiter.drive(context, |_, turn| if turn == Turn::Over { Poll::Ready(()) } else { Poll::Pending })
        })
        .await;
    }

    /// Drops the connection as it is.
    pub(super) fn stop(&self) {
        let running = lock(&self.0.running).take();
        drop(running);
        self.0.bell.ring_for_the_last_time();
    }
}

impl Running {
    fn poll(&mut self, context: &mut Context<'_>) -> Poll<hyper::Result<()>> {
        let end = self.connection.poll(context);
        if self.version == Version::Two {
            self.works.extend(self.new.take());
            while let Poll::Ready(Some(())) = self.works.poll_next_unpin(context) {}
        }
        end
    }
}

/// What the connection wakes: it need not be looked at before. Of those who wait one is enough to do so.
#[derive(Default)]
struct Bell {
    rung: AtomicBool,
    over: AtomicBool,
    /// Somebody is at it, and looks at the bell before going.
    held: AtomicBool,
    waiting: Mutex<Waiting>,
}

#[derive(Default)]
struct Waiting {
    /// So many came to wait.
    came: u64,
    /// Who still does, by number.
    wakers: Vec<(u64, Waker)>,
}

impl Wake for Bell {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        if !self.rung.swap(true, Ordering::AcqRel) && !self.held.load(Ordering::Acquire) {
            self.call_one();
        }
    }
}

impl Bell {
    fn let_go(&self) {
        self.held.store(false, Ordering::Release);
        if self.rung.load(Ordering::Acquire) {
            self.call_one();
        }
    }

    fn call_one(&self) {
        if self.over.load(Ordering::Acquire) {
            return;
        }
        let last = lock(&self.waiting).wakers.last().map(|(_, waker)| waker.clone());
        if let Some(waker) = last {
            waker.wake();
        }
    }

    /// The connection is over: nobody who waits is called again.
    fn ring_for_the_last_time(&self) {
        self.over.store(true, Ordering::Release);
        let all: Vec<Waker> = lock(&self.waiting).wakers.iter().map(|(_, waker)| waker.clone()).collect();
        for waker in all {
            waker.wake();
        }
    }
}

/// Somebody who waits, until dropped: then another takes over what they may have been called for.
pub(super) struct Waiter<'a> {
    engine: &'a Engine,
    number: Option<u64>,
}

impl Waiter<'_> {
    /// Drives the connection for what `wanted` polls, told what came of the last turn, and is called when there is more to do.
    pub(super) fn drive<T>(
        &mut self,
        context: &mut Context<'_>,
        mut wanted: impl FnMut(&mut Context<'_>, Turn) -> Poll<T>,
    ) -> Poll<T> {
        let bell = self.engine.bell();
        bell.held.store(true, Ordering::Release);
        let mut result = wanted(context, Turn::Idle);
        for _ in 0..MOST_TURNS {
            if result.is_ready() {
                break;
            }
            let turn = self.engine.turn();
            if turn == Turn::Idle {
                break;
            }
            result = wanted(context, turn);
            if turn == Turn::Over {
                break;
            }
        }
        if result.is_ready() {
            self.leave();
        } else {
            self.wait(context.waker());
        }
        bell.let_go();
        result
    }

    /// Whether it was waiting.
    fn leave(&mut self) -> bool {
        let Some(own) = self.number.take() else { return false };
        lock(&self.engine.bell().waiting).wakers.retain(|(number, _)| *number != own);
        true
    }

    fn wait(&mut self, waker: &Waker) {
        let mut waiting = lock(&self.engine.bell().waiting);
        let Waiting { came, wakers } = &mut *waiting;
        if let Some((_, known)) = wakers.iter_mut().find(|(number, _)| Some(*number) == self.number) {
            known.clone_from(waker);
            return;
        }
        *came += 1;
        self.number = Some(*came);
        wakers.push((*came, waker.clone()));
    }
}

impl Drop for Waiter<'_> {
    fn drop(&mut self) {
        if self.leave() && self.engine.bell().rung.load(Ordering::Acquire) {
            self.engine.bell().call_one();
        }
    }
}

fn lock<T>(of: &Mutex<T>) -> MutexGuard<'_, T> {
    of.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::AtomicUsize;

    /// A connection that is over once it says so.
    #[derive(Clone, Default)]
    struct Scripted(Arc<Mutex<Script>>);

    #[derive(Default)]
    struct Script {
        turns: usize,
        over: bool,
        waker: Option<Waker>,
    }

    impl Scripted {
        fn engine(&self) -> Engine {
            Engine::new(Box::new(self.clone()), Version::One, Works::default(), Fate::default())
        }

        /// Something arrives.
        fn wake(&self) {
            let waker = lock(&self.0).waker.take();
            waker.unwrap().wake();
        }

        fn turns(&self) -> usize {
            lock(&self.0).turns
        }
    }

    impl Driven for Scripted {
        fn poll(&mut self, context: &mut Context<'_>) -> Poll<hyper::Result<()>> {
            let mut script = lock(&self.0);
            script.turns += 1;
            script.waker = Some(context.waker().clone());
            if script.over { Poll::Ready(Ok(())) } else { Poll::Pending }
        }

        fn wind_up(&mut self) {
            lock(&self.0).over = true;
        }
    }

    /// A task that counts its calls.
    #[derive(Default)]
    struct Task(AtomicUsize);

    impl Wake for Task {
        fn wake(self: Arc<Self>) {
            self.0.fetch_add(1, Ordering::Relaxed);
        }
    }

    impl Task {
        fn drives(self: &Arc<Self>, waiter: &mut Waiter<'_>) -> Poll<()> {
            let waker = Arc::clone(self).into();
            waiter.drive(&mut Context::from_waker(&waker), |_, turn| {
                if turn == Turn::Over { Poll::Ready(()) } else { Poll::Pending }
            })
        }

        fn calls(&self) -> usize {
            self.0.load(Ordering::Relaxed)
        }
    }

    fn two_tasks() -> [Arc<Task>; 2] {
        [Arc::default(), Arc::default()]
    }

    #[test]
    fn a_connection_is_looked_at_once_for_each_call() {
        let connection = Scripted::default();
        let (engine, [task, _]) = (connection.engine(), two_tasks());
        let mut waiter = engine.waiter();
        for _ in 0..3 {
            assert_eq!(task.drives(&mut waiter), Poll::Pending);
        }
        assert_eq!((connection.turns(), task.calls()), (1, 0));
        connection.wake();
        assert_eq!(task.drives(&mut waiter), Poll::Pending);
        assert_eq!((connection.turns(), task.calls()), (2, 1));
    }

    #[test]
    fn what_the_connection_brings_is_looked_at_at_once() {
        let connection = Scripted::default();
        let engine = connection.engine();
        let (mut waiter, mut looks) = (engine.waiter(), Vec::new());
        let done = waiter.drive(&mut Context::from_waker(Waker::noop()), |_, turn| {
            looks.push(turn);
            if looks.len() < 3 {
                // What is asked of it in between has it go on.
                engine.0.waker.wake_by_ref();
                return Poll::Pending;
            }
            Poll::Ready(())
        });
        assert!(done.is_ready());
        assert_eq!((looks, connection.turns()), (vec![Turn::Idle, Turn::Taken, Turn::Taken], 2));
    }

    #[test]
    fn a_connection_that_never_rests_leaves_others_their_turn() {
        let connection = Scripted::default();
        let (engine, [task, _]) = (connection.engine(), two_tasks());
        let (mut waiter, waker) = (engine.waiter(), Arc::clone(&task).into());
        let never = waiter.drive(&mut Context::from_waker(&waker), |_, _| -> Poll<()> {
            engine.0.waker.wake_by_ref();
            Poll::Pending
        });
        assert!(never.is_pending());
        assert_eq!((connection.turns(), task.calls()), (MOST_TURNS, 1));
    }

    #[test]
    fn of_all_who_wait_one_is_called() {
        let connection = Scripted::default();
        let (engine, [first, second]) = (connection.engine(), two_tasks());
        let (mut one, mut other) = (engine.waiter(), engine.waiter());
        assert!(first.drives(&mut one).is_pending() && second.drives(&mut other).is_pending());
        connection.wake();
        assert_eq!((first.calls(), second.calls()), (0, 1));
        assert!(second.drives(&mut other).is_pending());
        drop(other);
        connection.wake();
        assert_eq!((first.calls(), second.calls()), (1, 1));
    }

    #[test]
    fn who_was_called_and_leaves_passes_it_on() {
        let connection = Scripted::default();
        let (engine, [first, second]) = (connection.engine(), two_tasks());
        let (mut one, mut other) = (engine.waiter(), engine.waiter());
        assert!(first.drives(&mut one).is_pending() && second.drives(&mut other).is_pending());
        connection.wake();
        drop(other);
        assert_eq!((first.calls(), second.calls()), (1, 1));
        assert!(first.drives(&mut one).is_pending());
        assert_eq!(connection.turns(), 2);
    }

    #[test]
    fn who_was_called_and_leaves_without_another_leaves_it_to_the_next() {
        let connection = Scripted::default();
        let (engine, [first, second]) = (connection.engine(), two_tasks());
        let mut one = engine.waiter();
        assert!(first.drives(&mut one).is_pending());
        connection.wake();
        drop(one);
        assert!(second.drives(&mut engine.waiter()).is_pending());
        assert_eq!(connection.turns(), 2);
    }

    #[test]
    fn the_end_is_everybodys() {
        for stops in [false, true] {
            let connection = Scripted::default();
            let (engine, [first, second]) = (connection.engine(), two_tasks());
            let (mut one, mut other) = (engine.waiter(), engine.waiter());
            assert!(first.drives(&mut one).is_pending() && second.drives(&mut other).is_pending());
            if stops {
                engine.stop();
            } else {
                lock(&connection.0).over = true;
                connection.wake();
                assert_eq!(engine.turn(), Turn::Over);
            }
            assert!(first.calls() > 0 && second.calls() > 0);
            for _ in 0..2 {
                assert!(first.drives(&mut one).is_ready() && second.drives(&mut other).is_ready());
            }
        }
    }

    #[test]
    fn nobody_is_called_for_what_is_over() {
        let connection = Scripted::default();
        let (engine, [task, _]) = (connection.engine(), two_tasks());
        engine.stop();
        let (mut waiter, waker, mut looks) = (engine.waiter(), Arc::clone(&task).into(), Vec::new());
        let never = waiter.drive(&mut Context::from_waker(&waker), |_, turn| -> Poll<()> {
            looks.push(turn);
            Poll::Pending
        });
        assert!(never.is_pending());
        assert_eq!(engine.turn(), Turn::Over);
        assert_eq!((looks, connection.turns(), task.calls()), (vec![Turn::Idle, Turn::Over], 0, 0));
    }
}
