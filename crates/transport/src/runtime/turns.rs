//! Turn after turn of a reactor's own work: to wake it takes a system call, which what it does itself need not cost.

use std::future::{Future, poll_fn};
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};
use std::task::{Context, Poll, Wake, Waker};
use tokio::task::coop::has_budget_remaining;

/// How many turns are taken before the reactor looks at its sockets and tasks again.
const MOST: usize = 32;

const IDLE: u8 = 0;
/// It waits for its turn, or for a further one.
const WOKEN: u8 = 1;
const AT_WORK: u8 = 2;

struct Turns {
    state: AtomicU8,
    reactor: Waker,
}

impl Wake for Turns {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        if self.state.fetch_or(WOKEN, Ordering::AcqRel) == IDLE {
            self.reactor.wake_by_ref();
        }
    }
}

/// `work`, which takes a further turn at once when it was woken during one.
pub(crate) async fn taken<F: Future>(work: F) -> F::Output {
    let mut work = pin!(work);
    let mut made: Option<(Arc<Turns>, Waker)> = None;
    poll_fn(|context| {
        if made.as_ref().is_none_or(|(turns, _)| !turns.reactor.will_wake(context.waker())) {
            let turns = Arc::new(Turns { state: AtomicU8::new(IDLE), reactor: context.waker().clone() });
            made = Some((Arc::clone(&turns), turns.into()));
        }
        let Some((turns, waker)) = &made else { return Poll::Pending };
        let mut own = Context::from_waker(waker);
        for _ in 0..MOST {
            turns.state.store(AT_WORK, Ordering::Release);
            if let Poll::Ready(output) = work.as_mut().poll(&mut own) {
                return Poll::Ready(output);
            }
            if turns.state.compare_exchange(AT_WORK, IDLE, Ordering::AcqRel, Ordering::Acquire).is_ok() {
                return Poll::Pending;
            }
            if !has_budget_remaining() {
                break;
            }
        }
        // It stays woken: the reactor comes back.
        turns.state.store(WOKEN, Ordering::Release);
        turns.reactor.wake_by_ref();
        Poll::Pending
    })
    .await
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::AtomicUsize;

    /// A reactor that counts how often it is woken.
    #[derive(Default)]
    struct Reactor(AtomicUsize);

    impl Wake for Reactor {
        fn wake(self: Arc<Self>) {
            self.0.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Polls `work` once; how often it took a turn, whether it is done, and how often it woke the reactor.
    fn poll_once(mut turn: impl FnMut(usize, &Waker) -> Poll<()>) -> (usize, bool, usize) {
        let reactor = Arc::new(Reactor::default());
        let mut count = 0;
        let mut work = Box::pin(taken(poll_fn(|context| {
            count += 1;
            turn(count, context.waker())
        })));
        let done = work.as_mut().poll(&mut Context::from_waker(&Arc::clone(&reactor).into())).is_ready();
        drop(work);
        (count, done, reactor.0.load(Ordering::Relaxed))
    }

    #[test]
    fn what_wakes_itself_takes_its_turn_at_once() {
        let (turns, done, woken) = poll_once(|turn, waker| {
            waker.wake_by_ref();
            if turn == 3 { Poll::Ready(()) } else { Poll::Pending }
        });
        assert_eq!((turns, done, woken), (3, true, 0));
    }

    #[test]
    fn what_is_not_woken_waits() {
        assert_eq!(poll_once(|_, _| Poll::Pending), (1, false, 0));
    }

    #[test]
    fn what_never_rests_leaves_the_reactor_its_turn() {
        let (turns, done, woken) = poll_once(|_, waker| {
            waker.wake_by_ref();
            Poll::Pending
        });
        assert_eq!((turns, done, woken), (MOST, false, 1));
    }

    #[test]
    fn woken_from_outside_it_wakes_the_reactor_once() {
        let (reactor, mut own) = (Arc::new(Reactor::default()), None);
        let mut work = Box::pin(taken(poll_fn(|context| {
            own.get_or_insert_with(|| context.waker().clone());
            Poll::<()>::Pending
        })));
        assert!(work.as_mut().poll(&mut Context::from_waker(&Arc::clone(&reactor).into())).is_pending());
        drop(work);
        let own = own.unwrap();
        own.wake_by_ref();
        own.wake();
        assert_eq!(reactor.0.load(Ordering::Relaxed), 1);
    }
}
