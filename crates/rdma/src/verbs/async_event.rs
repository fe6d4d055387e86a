//! Asynchronous events of a device, kept for each end that they concern.
//!
//! Both ends of a connection can be on ports of one device, and then share its context. The kernel gives out each event
//! once, to any reader. So what is read is kept, for all who share the context.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use rdma_sys::ibv_event_type as of;

use super::VerbsError;

/// What an event is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum EventSubject {
    /// The device, or a queue of it.
    Device,
    /// A port.
    Port(u8),
}

/// An event, copied and acknowledged.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct AsyncEvent {
    /// The number of `enum ibv_event_type`; the kernel may know more than the binding.
    pub(super) kind: u32,
    pub(super) subject: EventSubject,
}

/// After these no further message can be expected.
const ENDINGS: [(u32, &str); 7] = [
    (
        of::IBV_EVENT_DEVICE_FATAL as u32,
        "the device failed or was removed",
    ),
    (of::IBV_EVENT_PORT_ERR as u32, "the port went down"),
    (of::IBV_EVENT_CQ_ERR as u32, "a completion queue overran"),
    (of::IBV_EVENT_QP_FATAL as u32, "a queue pair failed"),
    (
        of::IBV_EVENT_SRQ_ERR as u32,
        "a shared receive queue failed",
    ),
    (
        of::IBV_EVENT_QP_REQ_ERR as u32,
        "a queue pair got an invalid request",
    ),
    (
        of::IBV_EVENT_QP_ACCESS_ERR as u32,
        "a queue pair refused an access",
    ),
];

/// After these a port is not what it was; messages may go on.
const CHANGES: [(u32, &str); 5] = [
    (of::IBV_EVENT_LID_CHANGE as u32, "the LID changed"),
    (
        of::IBV_EVENT_PKEY_CHANGE as u32,
        "the table of partition keys changed",
    ),
    (of::IBV_EVENT_SM_CHANGE as u32, "the subnet manager changed"),
    (
        of::IBV_EVENT_CLIENT_REREGISTER as u32,
        "the subnet manager asked to register again",
    ),
    (of::IBV_EVENT_GID_CHANGE as u32, "the table of GIDs changed"),
];

impl AsyncEvent {
    /// Of a kind and the port in its `element`, which only events about ports have.
    pub(super) fn new(kind: u32, port: i32) -> Self {
        let of_ports = [
            of::IBV_EVENT_PORT_ACTIVE as u32,
            of::IBV_EVENT_PORT_ERR as u32,
        ];
        let is_of_port = of_ports.contains(&kind) || name_in(&CHANGES, kind).is_some();
        AsyncEvent {
            kind,
            subject: if is_of_port {
                EventSubject::Port(port as u8)
            } else {
                EventSubject::Device
            },
        }
    }

    /// What happened, if no further message can be expected.
    pub(super) fn ending(&self) -> Option<&'static str> {
        name_in(&ENDINGS, self.kind)
    }

    /// What changed, if messages may go on.
    pub(super) fn change(&self) -> Option<&'static str> {
        name_in(&CHANGES, self.kind)
    }

    fn concerns(&self, port: u8) -> bool {
        match self.subject {
            EventSubject::Device => true,
            EventSubject::Port(number) => number == port,
        }
    }
}

fn name_in(names: &[(u32, &'static str)], kind: u32) -> Option<&'static str> {
    let found = names.iter().find(|(known, _)| *known == kind);
    found.map(|(_, name)| *name)
}

/// All events of an open context, in the order in which they came.
#[derive(Debug, Default)]
pub(super) struct EventLog(Mutex<Vec<AsyncEvent>>);

impl EventLog {
    /// The log that all share who use the context at this place in memory.
    pub(super) fn of(context: usize) -> Arc<Self> {
        static LOGS: Mutex<BTreeMap<usize, Weak<EventLog>>> = Mutex::new(BTreeMap::new());
        let mut logs = LOGS.lock().unwrap_or_else(PoisonError::into_inner);
        logs.retain(|_, log| log.strong_count() > 0);
        if let Some(log) = logs.get(&context).and_then(Weak::upgrade) {
            return log;
        }
        let log = Arc::default();
        logs.insert(context, Arc::downgrade(&log));
        log
    }

    /// How many have come so far.
    pub(super) fn length(&self) -> usize {
        self.events().len()
    }

    fn events(&self) -> MutexGuard<'_, Vec<AsyncEvent>> {
        // Whole after every statement, so a panic elsewhere does not spoil it.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Keeps what `take` brings, until it brings nothing more. Returns all from number `since` on that concern this
    /// port or the device. `take` is called by one thread at a time.
    pub(super) fn concerning(
        &self,
        port: u8,
        since: usize,
        mut take: impl FnMut() -> Result<Option<AsyncEvent>, VerbsError>,
    ) -> Result<Vec<AsyncEvent>, VerbsError> {
        let mut events = self.events();
        while let Some(event) = take()? {
            events.push(event);
        }
        let found = events.iter().skip(since);
        Ok(found
            .filter(|event| event.concerns(port))
            .copied()
            .collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LID_CHANGE: u32 = of::IBV_EVENT_LID_CHANGE as u32;
    const PORT_ERROR: u32 = of::IBV_EVENT_PORT_ERR as u32;

    /// What the ends on ports 1 and 2 of a device learn, the sender on port 1 asking first, when these events wait.
    fn learn(waiting: &[(u32, i32)]) -> [Vec<AsyncEvent>; 2] {
        let log = EventLog::default();
        let mut waiting = waiting.iter();
        let mut take = || {
            Ok(waiting
                .next()
                .map(|&(kind, port)| AsyncEvent::new(kind, port)))
        };
        [1, 2].map(|port| log.concerning(port, 0, &mut take).unwrap())
    }

    #[test]
    fn an_event_of_the_receivers_port_is_not_taken_from_it_by_the_sender() {
        let [sender, receiver] = learn(&[(PORT_ERROR, 2)]);
        assert_eq!(sender, []);
        assert_eq!(receiver.len(), 1);
        assert_eq!(receiver[0].ending(), Some("the port went down"));

        let [sender, receiver] = learn(&[(LID_CHANGE, 2), (PORT_ERROR, 1)]);
        assert_eq!(sender[0].ending(), Some("the port went down"));
        assert_eq!((receiver.len(), receiver[0].ending()), (1, None));
        assert_eq!(receiver[0].change(), Some("the LID changed"));
    }

    #[test]
    fn an_event_of_the_device_reaches_both_ends() {
        // The other kinds hold a pointer where that of a port has its number.
        for kind in [
            of::IBV_EVENT_DEVICE_FATAL,
            of::IBV_EVENT_QP_FATAL,
            of::IBV_EVENT_SRQ_ERR,
        ] {
            let ends = learn(&[(kind as u32, 0x7f02)]);
            assert!(ends.iter().all(|end| end[0].ending().is_some()), "{ends:?}");
        }
    }

    #[test]
    fn events_of_unknown_kinds_and_a_port_that_comes_up_mean_nothing() {
        for kind in [of::IBV_EVENT_PORT_ACTIVE as u32, 4711] {
            let event = AsyncEvent::new(kind, 1);
            assert_eq!((event.ending(), event.change()), (None, None));
        }
    }

    #[test]
    fn an_event_stays_for_whoever_asks_again_and_is_not_one_of_who_came_later() {
        let log = EventLog::default();
        let mut waiting = Some(AsyncEvent::new(PORT_ERROR, 1));
        let found = log.concerning(1, 0, || Ok(waiting.take())).unwrap();
        assert_eq!(log.concerning(1, 0, || Ok(None)).unwrap(), found);
        assert_eq!(log.concerning(1, log.length(), || Ok(None)).unwrap(), []);
    }

    #[test]
    fn a_log_is_shared_as_long_as_its_context_is_used() {
        let place = 0xabc0;
        let first = EventLog::of(place);
        first.0.lock().unwrap().push(AsyncEvent::new(LID_CHANGE, 1));
        assert!(Arc::ptr_eq(&first, &EventLog::of(place)));
        assert_eq!(EventLog::of(place + 1).length(), 0);
        drop(first);
        assert_eq!(EventLog::of(place).length(), 0);
    }
}
