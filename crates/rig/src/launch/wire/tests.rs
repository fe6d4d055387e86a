use crate::testing::Has as _;
use std::net::{Ipv4Addr, TcpListener};

use super::*;

const LIMIT: Duration = Duration::from_secs(20);
const SHORT: Duration = Duration::from_millis(30);

fn pair() -> (Wire, TcpStream) {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let wire = Wire::connect(listener.local_addr().unwrap(), LIMIT).unwrap();
    (wire, listener.accept().unwrap().0)
}

#[test]
fn messages_come_whole_however_they_are_cut() {
    let (mut wire, mut other) = pair();
    other.write_all(b"[1,2]\n\"thr").unwrap();
    assert_eq!(wire.receive::<Vec<u32>>(LIMIT).unwrap(), [1, 2]);
    assert_eq!(wire.poll::<String>(SHORT).unwrap(), None);
    other.write_all(b"ee\"\n4\n5\n").unwrap();
    assert_eq!(wire.receive::<String>(LIMIT).unwrap(), "three");
    assert_eq!(wire.receive::<u8>(LIMIT).unwrap(), 4);
    assert_eq!(wire.receive::<u8>(LIMIT).unwrap(), 5);
    drop(other);
    let ended = wire.receive::<u8>(LIMIT).unwrap_err();
    assert!(matches!(ended, WireError::Closed(_)), "{ended}");
}

#[test]
fn a_message_larger_than_any_buffer_of_the_kernel_arrives() {
    let (mut wire, other) = pair();
    let mut other = Wire::of(other).unwrap();
    let large: Vec<u64> = (0..1_000_000).collect();
    let sent = large.clone();
    let sender = std::thread::spawn(move || wire.send(&sent, LIMIT).map(|()| wire));
    assert_eq!(other.receive::<Vec<u64>>(LIMIT).unwrap(), large);
    sender.join().unwrap().unwrap();
}

#[test]
fn what_is_no_message_is_named_and_does_not_end_the_connection() {
    let (mut wire, mut other) = pair();
    other.write_all(b"GET / HTTP/1.1\x1b[2J\r\n7\n").unwrap();
    let error = wire.receive::<u8>(LIMIT).unwrap_err().to_string();
    error.has(&["GET / HTTP/1.1\\u{1b}[2J"]);
    assert_eq!(wire.receive::<u8>(LIMIT).unwrap(), 7);
}

#[test]
fn a_line_without_end_is_refused() {
    let (mut wire, mut other) = pair();
    let writer = std::thread::spawn(move || {
        let chunk = vec![b'x'; 1 << 20];
        // The wire may be gone before all is written.
        (0..20).all(|_| other.write_all(&chunk).is_ok());
    });
    let error = wire.receive::<u8>(LIMIT).unwrap_err();
    assert!(matches!(error, WireError::TooLong(..)), "{error}");
    drop(wire);
    writer.join().unwrap();
}

#[test]
fn nothing_waits_without_a_limit() {
    let (mut wire, other) = pair();
    let error = wire.receive::<u8>(SHORT).unwrap_err();
    let is_expected = matches!(error, WireError::Late { what: "answer", .. });
    assert!(is_expected, "{error}");
    // The other end reads nothing.
    let large = vec![0_u64; 7_000_000];
    let error = wire.send(&large, SHORT).unwrap_err();
    let is_expected = matches!(error, WireError::Late { .. });
    assert!(is_expected, "{error}: it was taken");
    drop(other);
}
