//! Tests of what a receiver does with segments.

use std::{collections::BTreeMap, vec::Vec};

use proptest::prelude::*;

use super::*;
use crate::pool::PoolMemory;
use crate::profile::WindowStep;

fn receiver(pool: &Pool<'_>, budget: u16, early: u16) -> Receiver {
    let mut receiver = Receiver::new(budget, early, WindowStep::Segment);
    receiver.set_segment(100, pool);
    receiver.start(SeqNum::new(u32::MAX - 150));
    receiver.offer(pool, u32::MAX);
    receiver
}

fn base() -> SeqNum {
    SeqNum::new(u32::MAX - 150)
}

fn block(start: u32, end: u32) -> SackBlock {
    SackBlock { start: base() + start, end: base() + end }
}

fn read_out(receiver: &mut Receiver, pool: &mut Pool<'_>, out: &mut [u8]) -> usize {
    let mut at = 0;
    receiver.read(pool, out.len(), |piece| {
        out[at..at + piece.len()].copy_from_slice(piece);
        at += piece.len();
    })
}

#[test]
fn the_window_is_the_free_budget_and_a_promise_is_kept_to_the_byte() {
    let mut memory = PoolMemory::<16, 128>::new();
    let mut pool = memory.pool();
    let mut receiver = receiver(&pool, 5, 5);
    assert_eq!(receiver.window(), 500);
    for sent in 0..500 {
        assert_eq!(receiver.free(&pool), 500 - sent);
        let nxt = receiver.nxt;
        assert!(receiver.accept(&mut pool, nxt, &[sent as u8]).advanced);
    }
    assert_eq!((receiver.offer(&pool, u32::MAX), receiver.held()), (0, (5, 0)));
    let mut out = [0; 600];
    assert_eq!(read_out(&mut receiver, &mut pool, &mut out), 500);
    assert!(out[..500].iter().enumerate().all(|(at, byte)| *byte == at as u8));
    assert_eq!((receiver.offer(&pool, u32::MAX), pool.free_count()), (500, 16));
}

#[test]
fn the_window_grows_by_a_segment_or_not_at_all() {
    let mut memory = PoolMemory::<16, 128>::new();
    let mut pool = memory.pool();
    let mut receiver = receiver(&pool, 2, 0);
    let nxt = receiver.nxt;
    receiver.accept(&mut pool, nxt, &[7; 200]);
    let mut out = [0; 99];
    assert_eq!(read_out(&mut receiver, &mut pool, &mut out), 99);
    assert_eq!(receiver.offer(&pool, u32::MAX), 0);
    assert_eq!(read_out(&mut receiver, &mut pool, &mut out[..1]), 1);
    assert_eq!(receiver.offer(&pool, u32::MAX), 100);
}

#[test]
fn sack_blocks_tell_the_latest_first_and_join() {
    let mut memory = PoolMemory::<16, 128>::new();
    let mut pool = memory.pool();
    let mut receiver = receiver(&pool, 10, 10);
    receiver.accept(&mut pool, base() + 100, &[1; 100]);
    receiver.accept(&mut pool, base() + 500, &[5; 100]);
    receiver.accept(&mut pool, base() + 300, &[3; 100]);
    assert_eq!(receiver.sack_blocks(4).as_slice(), [block(300, 400), block(500, 600), block(100, 200)]);
    receiver.accept(&mut pool, base() + 200, &[2; 100]);
    assert_eq!(receiver.sack_blocks(4).as_slice(), [block(100, 400), block(500, 600)]);
    // A copy is reported first, and once.
    receiver.accept(&mut pool, base() + 500, &[5; 100]);
    assert_eq!(receiver.sack_blocks(4).as_slice(), [block(500, 600), block(500, 600), block(100, 400)]);
    receiver.accept(&mut pool, base(), &[0; 100]);
    assert_eq!((receiver.nxt, receiver.readable), (base() + 400, 400));
    assert_eq!(receiver.sack_blocks(4).as_slice(), [block(500, 600)]);
}

#[test]
fn early_data_beyond_its_budget_is_dropped() {
    let mut memory = PoolMemory::<16, 128>::new();
    let mut pool = memory.pool();
    let mut receiver = receiver(&pool, 10, 2);
    for at in [100, 300, 500] {
        receiver.accept(&mut pool, base() + at, &[1; 100]);
    }
    assert_eq!((receiver.held(), receiver.dropped), ((0, 2), 100));
}

#[test]
fn an_empty_pool_takes_early_data_back_for_data_in_order() {
    let mut memory = PoolMemory::<4, 128>::new();
    let mut pool = memory.pool();
    let mut receiver = receiver(&pool, 4, 4);
    receiver.accept(&mut pool, base() + 200, &[2; 100]);
    receiver.accept(&mut pool, base() + 100, &[1; 100]);
    let mut other = Queue::EMPTY;
    while let Some(id) = pool.take(Purpose::Urgent) {
        other.push_back(&mut pool, id);
    }
    assert!(receiver.accept(&mut pool, base(), &[0; 100]).advanced);
    assert_eq!((receiver.nxt, receiver.sack_blocks(4).as_slice().len()), (base() + 200, 0));
    other.clear(&mut pool);
    receiver.clear(&mut pool);
    assert_eq!(pool.free_count(), 4);
}

proptest! {
    /// Any segments of a stream, in any order, with any reads in between: what is read is a prefix of the stream,
    /// SACK blocks name only what is held, and no buffer is lost.
    #[test]
    fn any_order_of_segments_reads_as_the_stream(
        steps in prop::collection::vec((0_u32..1200, 1_usize..260, 0_usize..300), 1..150),
        budget in 1_u16..8,
        early in 0_u16..8,
    ) {
        let byte = |at: u32| (at % 251) as u8;
        let mut memory = PoolMemory::<12, 128>::new();
        let mut pool = memory.pool();
        let mut receiver = receiver(&pool, budget, early);
        let mut sent = BTreeMap::new();
        let mut read = 0_u32;
        for (at, len, want) in steps {
            let edge = receiver.nxt + receiver.window();
            let (start, end) = (base() + at, base() + at + len as u32);
            // Trimmed to the window, as the connection does.
            let first = start.later(receiver.nxt);
            let last = end.earlier(edge);
            if first.before(last) {
                let data: Vec<u8> = (0..last.distance_from(first)).map(|i| byte(first.distance_from(base()) + i)).collect();
                for i in 0..data.len() as u32 { sent.insert(first.distance_from(base()) + i, ()); }
                receiver.accept(&mut pool, first, &data);
            }
            for run in receiver.sack_blocks(4).as_slice() {
                for at in run.start.distance_from(base())..run.end.distance_from(base()) {
                    prop_assert!(sent.contains_key(&at));
                }
            }
            let mut out = std::vec![0; want];
            let got = read_out(&mut receiver, &mut pool, &mut out);
            for got in &out[..got] {
                prop_assert_eq!(*got, byte(read));
                read += 1;
            }
            let before = receiver.nxt + receiver.window();
            receiver.offer(&pool, u32::MAX);
            prop_assert!((receiver.nxt + receiver.window()).at_or_after(before));
            let (queue, early_held) = receiver.held();
            prop_assert!(early_held <= early && queue <= budget + early);
            prop_assert_eq!(pool.free_count(), 12 - queue - early_held);
        }
        receiver.clear(&mut pool);
        prop_assert_eq!(pool.free_count(), 12);
    }
}
