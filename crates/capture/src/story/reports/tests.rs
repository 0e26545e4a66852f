//! That packing loses nothing.

use fullpipe_diagnose::SynFacts;
use fullpipe_units::{Bytes, Micros, Rate};
use proptest::prelude::*;

use super::*;
use crate::{Address, ClockSetBack, Counters, Endpoint, Handshake, Platform, Side};

fn side(words: [u64; 8], syn: bool) -> Side {
    let counters = Counters {
        packets: words[0],
        payload: words[1],
        carried: words[1] >> 8,
        largest: words[2] as u32,
        unseen: words[3] >> 40,
        too_big: words[4] >> 60,
        ..Counters::default()
    };
    let sending = Micros::new(words[5] >> 8);
    Side {
        counters,
        mss: words[2] as u32,
        syn: syn.then(|| SynFacts {
            mss: (words[6] & 1 == 0).then_some(words[6] as u16),
            window_scale: (words[6] & 2 == 0).then_some((words[6] >> 16) as u8),
            sack_permitted: words[6] & 4 == 0,
            timestamps: words[6] & 8 == 0,
            window: (words[6] & 16 == 0).then_some((words[6] >> 32) as u16),
        }),
        platform: Platform::coded(words[7] % 20),
        away: (words[7] & 32 == 0).then_some(Micros::new(words[7] >> 1)),
        sending,
        rate: Rate::from_bytes(Bytes::new(counters.carried), sending),
        verdict: None,
    }
}

proptest! {
    #[test]
    fn the_worst_come_first_however_many_are_looked_at(
        raw in proptest::collection::vec((0_u8..4, 0_u64..4), 0..50), looked_at in 0_usize..60,
    ) {
        let entries = raw.iter().zip(1..).map(|((weight, payload), number)| Entry {
            number, payload: *payload, weight: f64::from(*weight), part: 0, place: 0, kind: Kind::Packed,
        });
        let mut all = Reports { entries: entries.collect(), ..Reports::default() };
        let mut some = all.clone();
        all.worst_first(usize::MAX);
        some.worst_first(looked_at);
        let numbers = |reports: &Reports| reports.entries.iter().take(looked_at).map(|entry| entry.number).collect::<Vec<_>>();
        prop_assert_eq!(numbers(&all), numbers(&some));
        prop_assert!(all.entries.windows(2).all(|pair| pair[0].weight >= pair[1].weight));
        prop_assert_eq!(some.len(), raw.len());
    }

    #[test]
    fn a_packed_report_comes_back_as_it_was(
        ends: [(u128, u16); 2], words: [[u64; 8]; 3], is_ipv4: bool, some: u8,
    ) {
        let has = |place: u8| some >> place & 1 == 1;
        let ends = ends.map(|(address, port)| Endpoint {
            address: Address(if is_ipv4 { 0xFFFF_0000_0000 | (address & 0xFFFF_FFFF) } else { address }),
            port,
        });
        let [a, b, c] = words;
        let report = Report {
            number: 0,
            a: ends[0],
            b: ends[1],
            outer: a[0] as u32,
            first_packet: a[1] >> 1,
            started_ns: a[2],
            lasted: Micros::new(a[3]),
            rtt: has(0).then_some(Micros::new(a[4] >> 1)),
            sides: [side(b, has(1)), side(c, has(2))],
            handshake: Handshake {
                syns: a[5] as u32,
                packets: [has(3).then_some(a[1] >> 1), has(4).then_some((a[1] >> 1) + 3), has(5).then_some((a[1] >> 1) + 4)],
                took: has(6).then_some(Micros::new(a[6] >> 1)),
                simultaneous: has(7),
            },
            copies: a[7] >> 33,
            clock_set_back: has(0).then_some(ClockSetBack { packet: a[1] >> 1, by: Micros::new(a[3] >> 1) }),
            reset_by: (a[0] % 3).checked_sub(1).map(|side| side as u8),
        };
        let mut bytes = Vec::new();
        pack(&report, &mut bytes);
        prop_assert_eq!(format!("{:?}", unpack(&bytes)), format!("{report:?}"));
    }
}
