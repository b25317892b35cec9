//! A reactor's tasks beside its work, in one future with it.
//!
//! tokio asks the kernel for events whenever it changes from tasks to the blocked-on future. A packet goes through
//! both: endpoint and connection tasks take it in, and the message's receiver is part of the future. In one future the
//! change costs no system call. The order is tokio's: tasks as they were woken, then the work.

use crate::runtime::shared::lock;
use std::cell::RefCell;
use std::collections::VecDeque;
use std::future::Future;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, Wake, Waker};
use tokio::task::unconstrained;

/// So many are polled before tokio looks for events, as tokio itself does.
const POLLS_IN_TURN: usize = 61;

type Task = Pin<Box<dyn Future<Output = ()> + Send>>;

thread_local! {
    static OF_THIS_THREAD: RefCell<Option<Arc<Queue>>> = const { RefCell::new(None) };
}

/// Has this thread's reactor run `task` until it ends, or the work does.
pub(crate) fn spawn(task: Task) {
    // The bound is the number of tasks in turn, not tokio's count of operations.
    let task = Box::pin(unconstrained(task));
    match OF_THIS_THREAD.with_borrow(Clone::clone) {
        Some(queue) => {
            lock(&queue.new).push(task);
            queue.notify();
        }
        None => drop(tokio::spawn(task)),
    }
}

/// `work` and the tasks spawned meanwhile.
pub(super) async fn with_tasks<F: Future>(work: F) -> F::Output {
    let queue = Arc::new(Queue::default());
    let _registered = Registered::new(&queue);
    let mut tasks = Tasks { queue, tasks: Vec::new() };
    let work_waker = Arc::new(TaskWaker::new(None, &tasks.queue));
    let waker = Waker::from(Arc::clone(&work_waker));
    let mut work = std::pin::pin!(unconstrained(work));
    std::future::poll_fn(|context| {
        tasks.queue.enter(context.waker());
        for turn in 0..=POLLS_IN_TURN {
            // Always-ready tasks do not keep the work waiting.
            if turn < POLLS_IN_TURN && tasks.poll_next() {
                continue;
            }
            if work_waker.woken.swap(false, Ordering::SeqCst) {
                if let Poll::Ready(output) = work.as_mut().poll(&mut Context::from_waker(&waker)) {
                    return Poll::Ready(output);
                }
            } else if tasks.queue.leave(&work_waker) {
                return Poll::Pending;
            }
        }
        tasks.queue.is_polled.store(false, Ordering::SeqCst);
        context.waker().wake_by_ref();
        Poll::Pending
    })
    .await
}

/// The queue is the thread's as long as this lives.
struct Registered;

impl Registered {
    fn new(queue: &Arc<Queue>) -> Self {
        OF_THIS_THREAD.set(Some(Arc::clone(queue)));
        Self
    }
}

impl Drop for Registered {
    fn drop(&mut self) {
        OF_THIS_THREAD.set(None);
    }
}

struct Tasks {
    queue: Arc<Queue>,
    tasks: Vec<Option<(Task, Arc<TaskWaker>)>>,
}

impl Tasks {
    /// Polls the first woken task. Returns whether there was one.
    fn poll_next(&mut self) -> bool {
        for task in std::mem::take(&mut *lock(&self.queue.new)) {
            let free = self.tasks.iter().position(Option::is_none);
            let number = free.unwrap_or(self.tasks.len());
            let waker = Arc::new(TaskWaker::new(Some(number), &self.queue));
            lock(&self.queue.ready).push_back(number);
            if free.is_none() {
                self.tasks.push(None);
            }
            self.tasks[number] = Some((task, waker));
        }
        let Some(number) = lock(&self.queue.ready).pop_front() else { return false };
        if let Some((task, woken)) = &mut self.tasks[number] {
            woken.woken.store(false, Ordering::Release);
            let waker = Waker::from(Arc::clone(woken));
            if task.as_mut().poll(&mut Context::from_waker(&waker)).is_ready() {
                self.tasks[number] = None;
            }
        }
        true
    }
}

/// The woken tasks.
#[derive(Default)]
struct Queue {
    new: Mutex<Vec<Task>>,
    ready: Mutex<VecDeque<usize>>,
    /// Whoever polls looks for more before it ends.
    is_polled: AtomicBool,
    reactor: Mutex<Option<Waker>>,
}

impl Queue {
    fn notify(&self) {
        if !self.is_polled.load(Ordering::SeqCst)
            && let Some(reactor) = &*lock(&self.reactor)
        {
            reactor.wake_by_ref();
        }
    }

    fn enter(&self, reactor: &Waker) {
        self.is_polled.store(true, Ordering::SeqCst);
        match &mut *lock(&self.reactor) {
            Some(known) => known.clone_from(reactor),
            place @ None => *place = Some(reactor.clone()),
        }
    }

    /// Nobody polls any more. Returns false where somebody was woken meanwhile, by another thread.
    fn leave(&self, work: &TaskWaker) -> bool {
        self.is_polled.store(false, Ordering::SeqCst);
        let is_idle = lock(&self.ready).is_empty() && lock(&self.new).is_empty() && !work.woken.load(Ordering::SeqCst);
        self.is_polled.store(!is_idle, Ordering::SeqCst);
        is_idle
    }
}

/// Wakes a task, or the work (without a number).
struct TaskWaker {
    number: Option<usize>,
    woken: AtomicBool,
    queue: Arc<Queue>,
}

impl TaskWaker {
    fn new(number: Option<usize>, queue: &Arc<Queue>) -> Self {
        Self { number, woken: AtomicBool::new(true), queue: Arc::clone(queue) }
    }
}

impl Wake for TaskWaker {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        if self.woken.swap(true, Ordering::SeqCst) {
            return;
        }
        if let Some(number) = self.number {
            lock(&self.queue.ready).push_back(number);
        }
        self.queue.notify();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Driver;
    use std::time::Duration;
    use tokio::sync::{mpsc, oneshot};

    #[test]
    fn a_task_runs_beside_the_work_and_ends_with_it() {
        let (requests, mut taken) = mpsc::unbounded_channel::<oneshot::Sender<u32>>();
        let (gone, mut ended) = oneshot::channel::<()>();
        let answers = Driver::Reactor.run(async move {
            spawn(Box::pin(async move {
                let _gone = gone;
                let mut number = 0;
                while let Some(answer) = taken.recv().await {
                    number += 1;
                    let _ = answer.send(number);
                }
            }));
            let mut answers = Vec::new();
            for _ in 0..200 {
                let (answer, answered) = oneshot::channel();
                requests.send(answer).unwrap();
                answers.push(answered.await.unwrap());
            }
            answers
        });
        assert_eq!(answers.unwrap(), (1..=200).collect::<Vec<_>>());
        assert_eq!(ended.try_recv(), Err(oneshot::error::TryRecvError::Closed));
    }

    #[test]
    fn another_thread_wakes_what_waits() {
        let (send, receive) = oneshot::channel();
        let waiting = std::thread::spawn(|| Driver::Reactor.run(receive));
        std::thread::spawn(|| send.send(7)).join().unwrap().unwrap();
        assert_eq!(waiting.join().unwrap().unwrap(), Ok(7));
    }

    #[test]
    fn a_task_that_is_always_ready_leaves_timers_their_turn() {
        let done = Driver::Reactor.run(async {
            spawn(Box::pin(std::future::poll_fn(|context| {
                context.waker().wake_by_ref();
                Poll::Pending
            })));
            tokio::time::sleep(Duration::from_millis(1)).await;
        });
        done.unwrap();
    }
}
