//! The table against the standard library's map, and what directions, ageing and floods do to it.

use core::net::{IpAddr, Ipv4Addr};
use std::collections::HashMap;

use proptest::prelude::*;

use super::*;

impl<T: Default> Table<T> {
    pub(crate) fn places(&self) -> usize {
        self.places.len()
    }

    pub(crate) fn index_bytes(&self) -> usize {
        self.index.len() * size_of::<u64>()
    }
}

fn end(address: u32, port: u16) -> Endpoint {
    Endpoint { address: IpAddr::V4(Ipv4Addr::from(address)).into(), port }
}

fn key(number: u32) -> Key {
    Key::from_flow(&Flow {
        from: end(0x0A00_0001, 80),
        to: end(0x0A01_0000 + number / 60_000, number as u16),
        outer: 0,
    })
    .0
}

#[test]
fn both_directions_have_one_key_and_tell_who_sent() {
    let flow = Flow { from: end(2, 80), to: end(1, 90), outer: 7 };
    let (there, sender) = Key::from_flow(&flow);
    let (back, answerer) = Key::from_flow(&flow.reversed());
    assert_eq!(there, back);
    assert_eq!((sender, answerer), (Sender::High, Sender::Low));
    assert_eq!(there.flow(), flow.reversed());
    let same_host = Flow { from: end(1, 90), to: end(1, 80), outer: 0 };
    assert_eq!(Key::from_flow(&same_host).1, Sender::High);
    assert_eq!(Key::from_flow(&same_host).0, Key::from_flow(&same_host.reversed()).0);
}

#[test]
fn what_carried_a_flow_tells_it_apart() {
    let flow = Flow { from: end(2, 80), to: end(1, 90), outer: 7 };
    assert_ne!(Key::from_flow(&flow).0, Key::from_flow(&Flow { outer: 8, ..flow }).0);
}

#[test]
fn an_expiry_scan_meets_every_slot_and_frees_those_that_are_over() {
    let mut table: Table<u32> = Table::new(3);
    for number in 0..100 {
        let (slot, _) = table.find_or_insert(&key(number));
        *table.value_mut(slot) = number;
    }
    let mut met = Vec::new();
    for _ in 0..50 {
        table.scan(2, |_, met_key, number| {
            assert_eq!(met_key, &key(*number));
            met.push(*number);
            *number % 3 == 0
        });
    }
    assert_eq!(met, (0..100).collect::<Vec<_>>());
    assert_eq!(table.len(), 66);
    assert!(table.slots().all(|slot| slot.index() % 3 != 0));
    assert_eq!(table.find(&key(3)), None);
    let (slot, is_new) = table.find_or_insert(&key(1000));
    assert!(is_new && slot.index() < 100, "slots are used again");
    assert_eq!(*table.value(slot), 0, "and know nothing of their former use");
}

#[test]
fn close_addresses_and_ports_spread_over_the_index() {
    for seed in 0..4 {
        let mut table: Table = Table::new(seed);
        for number in 0..190_000 {
            table.find_or_insert(&key(number));
        }
        let mask = table.mask();
        let away = |(place, entry): (usize, &u64)| place.wrapping_sub((*entry >> 32) as usize & mask) & mask;
        let worst = table.index.iter().enumerate().filter(|(_, entry)| **entry != 0).map(away).max().unwrap();
        // At this load (0.72) the longest run of linear probing is of the order of log(n) / (1 - load)^2.
        assert!(worst < 300, "seed {seed}: {worst} places from home");
    }
}

proptest! {
    #[test]
    fn answers_as_a_map_does(
        seed: u64,
        steps in prop::collection::vec((0_u8..4, 0_u32..150), 0..2000),
    ) {
        let mut table: Table = Table::new(seed);
        let mut map: HashMap<u32, Slot> = HashMap::new();
        for (what, number) in steps {
            let found = table.find(&key(number));
            prop_assert_eq!(found, map.get(&number).copied());
            match (what, found) {
                (0, Some(slot)) => {
                    table.remove(slot);
                    map.remove(&number);
                }
                (1, _) => {}
                _ => {
                    let (slot, is_new) = table.find_or_insert(&key(number));
                    prop_assert_eq!(is_new, found.is_none());
                    prop_assert!(map.iter().all(|(other, taken)| *other == number || *taken != slot));
                    prop_assert_eq!(table.key(slot), &key(number));
                    map.insert(number, slot);
                }
            }
            prop_assert_eq!(table.len(), map.len());
            prop_assert_eq!(table.slots().count(), map.len());
        }
    }
}
