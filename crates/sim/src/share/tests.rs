//! Shares that hold their promises: never more than the pool, none better by exhaustive search, the same in any order.

use proptest::prelude::*;

use super::*;

/// A device whose packets take their share of the round trip and the slower of line and processor: fast, and concave.
struct Formula;

impl Model for Formula {
    fn bulk(&self, sockets: &Sockets, packets: u16) -> Result<(Rate, Option<Limiter>), SimError> {
        let line = 1538.0 * 8e6 / sockets.rate.unwrap_or(Rate::from_bps(100_000_000)).bps() as f64;
        let each = sockets.rtt.get() as f64 / f64::from(packets) + line.max(207.0);
        Ok((Rate::from_bps((1460.0 * 8e6 / each) as u64), None))
    }

    fn latency(&self, sockets: &Sockets, packets: u16) -> Result<Micros, SimError> {
        let sets = sockets.message.get().div_ceil(SEGMENT).div_ceil(packets.into());
        Ok(Micros::new(sockets.rtt.get() * sets + 500))
    }

    fn ceiling(&self, _: bool) -> Result<Rate, SimError> {
        Ok(Rate::from_bps(56_000_000))
    }
}

fn device(pool: u32) -> Device {
    Device {
        pool,
        reserve: Device::default_reserve(pool),
        per_packet: Micros::new(138),
        link: Rate::from_bps(100_000_000),
        max_wait: None,
    }
}

fn group() -> impl Strategy<Value = String> {
    let kind = prop_oneof![
        (100_u32..50_000, 1_u32..700, any::<bool>()).prop_map(|(kbps, ms, receives)| {
            format!("bulk {kbps}k {ms}ms{}", if receives { " receives" } else { "" })
        }),
        (1_u32..20_000, 1_u32..100).prop_map(|(bytes, ms)| format!("interactive {ms}ms message {bytes}B")),
    ];
    (1_u16..5, kind).prop_map(|(count, kind)| format!("{count}x {kind}"))
}

/// Each socket's four numbers, whatever the order of the groups.
fn sockets(shares: &Shares, groups: &[Sockets]) -> Vec<(String, [u16; 4])> {
    let mut all: Vec<_> = shares
        .shares
        .iter()
        .flat_map(|share| {
            let numbers = [&share.receive, &share.out_of_order, &share.transmit, &share.unacknowledged];
            let text = groups[share.group].text.split_once("x ").unwrap().1.to_owned();
            vec![(text, numbers.map(|number| number.buffers)); share.count.into()]
        })
        .collect();
    all.sort();
    all
}

proptest! {
    #[test]
    fn the_shares_stay_within_the_pool_without_its_reserve(
        texts in proptest::collection::vec(group(), 1..5), pool in 32_u32..1_500
    ) {
        let groups = parse_sockets(&texts.join(", ")).unwrap();
        let device = device(pool);
        match share_with(&device, &groups, &Formula) {
            Ok(shares) => {
                let each = sockets(&shares, &groups);
                let used: u32 = each.iter().flat_map(|(_, numbers)| numbers).map(|own| u32::from(*own)).sum();
                prop_assert_eq!(used, shares.shared);
                prop_assert_eq!(used + shares.left, pool - device.reserve);
                prop_assert_eq!(each.len(), groups.iter().map(|group| usize::from(group.count)).sum::<usize>());
            }
            Err(ShareError::Pool { needed, .. }) => prop_assert!(needed > pool - device.reserve),
            Err(other) => prop_assert!(false, "{other}"),
        }
    }

    #[test]
    fn a_larger_pool_takes_from_nobody(texts in proptest::collection::vec(group(), 1..4), pool in 200_u32..900) {
        let groups = parse_sockets(&texts.join(", ")).unwrap();
        if let Ok(few) = share_with(&device(pool), &groups, &Formula) {
            let many = share_with(&device(pool + 7), &groups, &Formula).unwrap();
            prop_assert!(many.total >= few.total);
            let pairs = sockets(&few, &groups).into_iter().zip(sockets(&many, &groups));
            for ((_, few), (_, many)) in pairs {
                prop_assert!(few.iter().zip(&many).all(|(few, many)| few <= many));
            }
        }
    }

    #[test]
    fn the_order_of_the_groups_changes_nothing(
        texts in proptest::collection::vec(group(), 1..5), pool in 200_u32..900, turn in 0_usize..5
    ) {
        let mut turned = texts.clone();
        turned.rotate_left(turn % texts.len());
        turned.reverse();
        let [one, other] = [texts, turned].map(|texts| {
            let groups = parse_sockets(&texts.join(", ")).unwrap();
            share_with(&device(pool), &groups, &Formula).ok().map(|shares| (shares.total, sockets(&shares, &groups)))
        });
        prop_assert_eq!(one, other);
    }
}

#[test]
fn what_does_not_fit_says_what_would() {
    let groups = parse_sockets("20x bulk 25M 15ms").unwrap();
    let error = share_with(&device(256), &groups, &Formula).unwrap_err();
    assert_eq!(
        error.to_string(),
        "20 sockets need 380 buffers at least (each 19 bulk), and a pool of 256 has 192 beyond its reserve of 64; build \
         with BUFFER_POOL_SIZE 506 or more, open fewer sockets at once, or give a smaller --reserve"
    );
    assert!(share_with(&device(506), &groups, &Formula).is_ok());
    assert!(share_with(&device(505), &groups, &Formula).is_err());
    let own = |pool| share_with(&Device { reserve: 9, ..device(pool) }, &groups, &Formula);
    assert!(own(256).unwrap_err().to_string().contains("BUFFER_POOL_SIZE 389 ") && own(389).is_ok());
}

#[test]
fn a_wait_that_is_allowed_bounds_the_packets_of_bulk_sockets() {
    let groups = parse_sockets("2x bulk 25M 80ms, interactive").unwrap();
    let free = share_with(&device(512), &groups, &Formula).unwrap();
    let bound = Device { max_wait: Some(Micros::from_millis(4)), ..device(512) };
    let held = share_with(&bound, &groups, &Formula).unwrap();
    assert!(free.wait > Micros::from_millis(4) && held.wait <= Micros::from_millis(4), "{free:?} {held:?}");
    assert_eq!(held.stop, Stop::Wait);
    let short = Device { max_wait: Some(Micros::from_millis(1)), ..device(512) };
    assert!(matches!(share_with(&short, &groups, &Formula), Err(ShareError::Wait { .. })));
}

/// The published table again, with the simulator: 20 buffers on a LAN, 40 over the Internet.
#[test]
fn one_socket_with_ample_buffers_gets_its_plateau() {
    for (text, least) in [("bulk 100M 500us", 20), ("bulk 25M 7454us", 40), ("bulk 25M 80ms", 43)] {
        let groups = parse_sockets(text).unwrap();
        let shares = share(&device(256), &groups).unwrap();
        let [own] = shares.shares.as_slice() else { panic!("{shares:?}") };
        assert!((least..=43).contains(&own.transmit.buffers), "{text}: {shares:?}");
        assert_eq!(own.transmit.buffers, own.unacknowledged.buffers);
    }
}

#[test]
fn interactive_sockets_have_what_their_messages_take() {
    let groups = parse_sockets("4x bulk 25M 15ms, 2x interactive, interactive 20ms message 16k").unwrap();
    let shares = share(&device(256), &groups).unwrap();
    for own in shares.shares.iter().filter(|own| own.group > 0) {
        let (latency, ample) = own.latency.unwrap();
        assert!(latency.get() as f64 <= ample.get() as f64 * AS_SOON, "{own:?}");
    }
    let of = |group| shares.shares.iter().find(|own| own.group == group).unwrap();
    assert_eq!(of(1).transmit.buffers, LEAST);
    assert!(of(2).transmit.buffers > LEAST, "{:?}", of(2));
    assert!(shares.shared <= 192);
}

#[test]
fn a_receiving_socket_gets_its_buffers_in_the_lists_of_what_is_received() {
    let groups = parse_sockets("bulk 10M 30ms receives loss 1%").unwrap();
    let shares = share(&device(128), &groups).unwrap();
    let [own] = shares.shares.as_slice() else { panic!("{shares:?}") };
    assert!(own.receive.buffers > own.transmit.buffers, "{own:?}");
    assert_eq!(own.out_of_order.buffers + 1, own.receive.buffers);
}
