//! Every number that a rule of the judge compares with, and where it comes from. What is *not* here: the rules.

/// Fewer segments than this are not enough evidence: TCP's start, not its steady state, is all that they show.
pub(crate) const LEAST_SEGMENTS: f64 = 20.0;

/// Fewer round trips than this, likewise: doubling from ten segments (RFC 6928) needs four to reach a window of 64 KB.
pub(crate) const LEAST_ROUND_TRIPS: f64 = 4.0;

/// ... but where each round trip shows more than the one before, by this factor, that start is the story.
pub(crate) const OPENING_FACTOR: f64 = 1.7;

/// ... and the transfer lasts no longer than its doublings and this many round trips: the first, the last, which carries
/// what is left, and its acknowledgement.
pub(crate) const OPENING_ROUND_TRIPS: f64 = 3.0;

/// What is in flight in slow start doubles in four round trips at the slowest (RFC 9406 divides its growth by four once round trips
/// become longer): what grew by less in as many doesn't open any more.
pub(crate) const OPENING_SLOWEST: f64 = 1.4;

/// Counters show a window that opens where it grew by this part of what was acknowledged: by all of it, but for what came after the
/// last round trip in which it was used up.
pub(crate) const OPENING_GROWN: f64 = 0.5;

/// Fewer intervals between samples than this can't be distinguished from chance.
pub(crate) const LEAST_INTERVALS: usize = 5;

/// The segment size assumed where none was seen: an Ethernet MTU less IPv4, TCP and timestamps.
pub(crate) const ASSUMED_MSS: f64 = 1_448.0;

/// Rates are averaged over two round trips to either side: bursts repeat with the first, and a lost segment holds the
/// cumulative acknowledgement back until the second.
pub(crate) const HALF_WINDOW_ROUND_TRIPS: f64 = 2.0;

/// ... and over at least this long, so that one burst or one sample doesn't count as a rate.
pub(crate) const LEAST_HALF_WINDOW_US: f64 = 25_000.0;

/// A window or buffer is used up when this many segments or fewer of it are free: a sender that avoids silly windows
/// (RFC 9293, section 3.8.6.2.1) or coalesces segments leaves up to three. Siekkinen 2008 uses the same number.
pub(crate) const SLACK_SEGMENTS: f64 = 3.0;

/// ... or when this part of it is in use, for bursts larger than three segments. On a hand-labelled trace the stricter
/// rule finds 21 % of the time, this one 57 %, with no false alarm in the controls.
pub(crate) const WINDOW_USED: f64 = 0.9;

/// ... but never while more than this part of the window is free, or small windows would count as used when half empty.
pub(crate) const SLACK_OF_WINDOW: f64 = 0.25;

/// Everything written is below this part of the congestion window and of the offered window: the sender has room and
/// nothing to put into it.
pub(crate) const SUPPLY_SHORT: f64 = 0.85;

/// A capture's idle times are surely the application's from this part of the time on. Of 11 sure ones on other stacks the four wrong
/// had 0.54 to 0.70 (a buffer that one write fills, a reader that pauses).
pub(crate) const IDLE_ALONE: f64 = 0.75;

/// Unsent data below this many segments is nothing waiting: the tail of a write that isn't a multiple of the segment.
pub(crate) const WAITING_SEGMENTS: f64 = 2.0;

/// A writer that waits for room in its send buffer keeps it above two thirds: Linux wakes it when a third is free
/// (`sk_stream_is_writeable`). A little below, because the sample may fall between the wake-up and the write.
pub(crate) const SEND_BUFFER_FULL: f64 = 0.6;

/// Behind a full send buffer Linux counts (`tcpi_sndbuf_limited`) 0.31 to 0.44 of the time, for buffers of 4,608 to 262,144 B
/// at 40 ms; none where an application keeps less on its way than its buffer holds.
pub(crate) const WRITER_WAITS: f64 = 0.05;

/// ... but none under Reno and CUBIC, whose congestion window such a sender uses up (`tcp_cwnd_validate`). There the buffer holds
/// all that it may, and more, with nothing left to send, at this part of the samples, early and late: 0.04 to 0.9 are seen.
pub(crate) const OVER_FULL: f64 = 0.02;

/// A send buffer of so many bytes is a large one: what it holds is judged without the kernel's count. A smaller automatic one is often just as
/// large as what an application keeps in flight.
pub(crate) const LARGE_BUFFER: f64 = 4e5;

/// It is kept filled where it holds `SEND_BUFFER_FULL` of its size for this part of the time. Behind 0.4 to 3.6 MB it never fell below 0.66
/// (56 transfers); applications that keep less in flight than it holds let it fall to 0.08 to 0.54 (21).
pub(crate) const KEPT_FILLED: f64 = 0.95;

/// A large buffer that is kept filled holds its sender where it is filled to this part again and again ...
pub(crate) const NEARLY_FULL: f64 = 0.9;

/// ... as this part of the time shows, in each quarter of the samples but the first: what fills it leaves at once. Fifteen of those 56 show
/// nothing else, from 0.02 on; of the 21, none shows it.
pub(crate) const NEARLY_FULL_AT_TIMES: f64 = 0.02;

/// Linux wakes the writer of a full send buffer once this part of it is left (`sk_stream_is_writeable`). ...
pub(crate) const WAKE_MARK: f64 = 2.0 / 3.0;

/// ... The last acknowledgement of a burst leaves no more than this above it, in bytes: three of the largest segments ...
pub(crate) const WAKE_SLACK: f64 = 3.0 * 65_536.0;

/// ... or this part of the buffer. Nothing moves then until the acknowledgements of the next burst.
pub(crate) const WAKE_SLACK_PART: f64 = 0.2;

/// A large buffer that is kept filled holds its sender, too, where the sender rests there for this part of the time, early and late: the other
/// 41 of those 56, at 0.25 to 0.5. An application that keeps as much in flight goes on writing, and is acknowledged. Linux counts (`tcpi_sndbuf_limited`) a part of that time, or none: it asks only when
/// something is sent.
pub(crate) const AT_WAKE_MARK: f64 = 0.25;

/// Such a writer is woken when a third of the buffer is free, and refills the path with one burst, up to the congestion window. It
/// holds its sender, whatever samples say that fall into the burst, from this part of the time on: seen are 0.6 and more.
pub(crate) const REFILLS: f64 = 0.4;

/// Where packets are all there is, such a flight is on average at no more than this part of its top in each round trip, long after
/// any loss: emulated Linux behind 16 to 80 KB was at 0.51 to 0.67, windows that losses hold down at 0.81 to 1, ...
pub(crate) const LATE_FILLED: f64 = 0.7;

/// ... and for most of the time nothing had been lost for long: 0.73 to 1 there, 0.36 and 0.52 where a policer or chance took segments
/// of the same senders.
pub(crate) const MOSTLY_CALM: f64 = 0.65;

/// Of what is in flight this quantile by time is the least that it falls to: one of 50 looks, as `watch` takes them in six seconds ...
pub(crate) const LOW_FLIGHT: f64 = 0.02;

/// ... and below this part of what the empty path holds at that rate, the path runs dry. Reno and CUBIC with `SO_SNDBUF` of 125 and
/// 250 KB over 50 to 200 Mbit/s and 40 to 100 ms were at 0.24 to 0.93; paths that they filled with the same buffers at 1.03 and above.
pub(crate) const RUNS_DRY: f64 = 0.97;

/// So many pauses in a round trip has a sender that one write in each fills again: 0.44 to 0.78 behind buffers of emulated Linux under
/// BBR. Applications that met one top had 0.07 to 0.24 and 2.6, but others fell into the range, so that the verdict names both.
pub(crate) const ONE_TOP_PAUSES: std::ops::RangeInclusive<f64> = 0.4..=1.4;

/// What a sender carries that its send buffer holds needs no less of it, by Little's law, than this part of the most that is in flight:
/// 0.56 to 1 in captures of buffers of Linux, lwIP and smoltcp; applications that had been taken for buffers beside their receivers
/// needed 0.26 to 0.33.
pub(crate) const HALF_EMPTY: f64 = 0.4;

/// A kernel chronograph that ran for this part of an interval counts as corroboration.
pub(crate) const CHRONOGRAPH: f64 = 0.5;

/// Behind a window or a buffer of an end that is all that holds a sender, Linux counts (`tcpi_rwnd_limited`,
/// `tcpi_sndbuf_limited`) this part of the time at least, or as many samples find it used up: seen are 0.22 to 0.35 where BBR
/// paces just below `iperf3 -w 64K` at 40 ms, 0.28 to 0.75 behind other windows, 0.29 and more behind buffers, and 0.00 on
/// full paths of 5 Mbit/s to 1 Gbit/s. BBR tries for more in one round trip of eight, and reaches a window a little above a
/// full path's product then: 0.125.
pub(crate) const END_HOLDS: f64 = 0.16;

/// The two of them hold the sender, and not a busy processor, where samples find one or the other used up for this part of the time:
/// a window of 64 KB and a buffer of 76 KB were, together, for 0.36 to 0.64 (1 Gbit/s, 1 ms, at rest and with a processor busy).
pub(crate) const ENDS_HOLD: f64 = 0.3;

/// The round trip is inflated by queueing from this factor on (1.2 to 1.25 in the published definitions).
pub(crate) const QUEUE_FACTOR: f64 = 1.25;

/// ... where a loss-based sender is limited by its congestion window, a smaller factor will do: nothing else makes the
/// round trip grow with the window, and a shallow queue adds little.
pub(crate) const QUEUE_FACTOR_CONGESTION: f64 = 1.10;

/// ... and where the data in flight also stands at a window, this one: with a window just above the product, the queue
/// is all that tells that the path is full.
pub(crate) const QUEUE_FACTOR_WINDOW: f64 = 1.05;

/// A window or a buffer that leaves a link idle is smaller than the bandwidth-delay product, and a burst of that size queues for less than
/// the empty round trip. From twice the empty round trip on the link is busy, even where its rate changes and it pauses (radio links) ...
pub(crate) const DEEP_QUEUE: f64 = 2.0;

/// ... where the difference is more than scheduling delay on a host, in microseconds ...
pub(crate) const DEEP_QUEUE_US: f64 = 20_000.0;

/// ... and where the receiver doesn't acknowledge late: the link has then delivered everything, and is idle for this part of the time.
pub(crate) const DEEP_DRY: f64 = 0.5;

/// The rate is uneven where its first decile is at most this part of its last.
pub(crate) const UNEVEN: f64 = 0.5;

/// By Little's law what is in flight is the rate times the time under way. At least this part of the queue that round trips show
/// must be in flight beyond the rate times the empty round trip; else what round trips show is a burst behind itself.
pub(crate) const QUEUE_HELD: f64 = 0.5;

/// ... and at least so many full segments must stand there. A receiver acknowledges every second segment (RFC 5681, section 4.2),
/// so that a window of a few segments waits for the last one of each round: four of them take two round trips, which looks like
/// a queue of two. Simulated NetBurner and Windows receivers show up to 2.7.
pub(crate) const STANDING_SEGMENTS: f64 = 3.0;

/// ... and where the path delivered without a gap, this one.
pub(crate) const QUEUE_FACTOR_LEAST: f64 = 1.01;

/// A link that delivered nothing for this part of the time around a moment was not full then. Full links of 1 to 20 Mbit/s
/// were at 0.03 to 0.16, buffers and windows that are used up in bursts at 0.43 to 0.82, losses at 0.63 and above.
pub(crate) const DRY: f64 = 0.25;

/// ... and below this part it may have been.
pub(crate) const NEVER_FULL: f64 = 0.1;

/// ... and below this one it left no gap: full links are at 0 to 0.03 but for the seconds in which losses are repaired.
pub(crate) const EVEN: f64 = 0.04;

/// ... over this many round trips to either side.
pub(crate) const DRY_ROUND_TRIPS: f64 = 4.0;

/// A loss-based sender visits its queue before each loss: the upper quartile of round trips shows it.
pub(crate) const QUEUE_QUANTILE: f64 = 0.75;

/// Without loss, the highest round trips (this quantile by time) must show a queue: BBR probes for more in one of eight.
pub(crate) const PROBING_QUANTILE: f64 = 0.9;

/// A queue stands where the least that is in flight (the tenth percentile) is at least this part of what usually is.
pub(crate) const NEVER_DRY: f64 = 0.6;

/// Less delay than this is scheduling and interrupt coalescing, not a queue.
pub(crate) const LEAST_QUEUE_US: f64 = 250.0;

/// From this part of the path's known rate on, the path is full; what is left is measurement error and headers.
pub(crate) const PATH_FULL: f64 = 0.92;

/// The spacing of segments tells a link's rate only where the transfer carries this part of it.
pub(crate) const LEAST_LINK: f64 = 0.6;

/// Below this part of the path's known rate, the path is not full, whatever the round trip does.
pub(crate) const PATH_NOT_FULL: f64 = 0.85;

/// A rate within 15 % of the plateau is at the plateau (published: delivery rate at least 0.8 to 0.9 of its maximum).
pub(crate) const AT_PLATEAU: f64 = 0.85;

/// The plateau is this quantile of the rates by time: a maximum would be one burst.
pub(crate) const PLATEAU_QUANTILE: f64 = 0.9;

/// At the plateau for this part of the time: steady.
pub(crate) const STEADY_SHARE: f64 = 0.6;

/// Without loss, a rate is a path's only when it stays for this many round trips: two of the opening of a paced sender look
/// as steady.
pub(crate) const PLATEAU_ROUND_TRIPS: f64 = 8.0;

/// CUBIC multiplies its window by 0.7 after a loss (RFC 9438, section 4.6): a rate no lower than this is the trough of
/// a saw-tooth at the path's capacity, not a sender held down.
pub(crate) const TROUGH: f64 = 0.65;

/// Losses that strike at the same amount in flight (coefficient of variation) are a full queue; random ones scatter
/// with a coefficient near 0.3 and above.
pub(crate) const REPEATABLE_PEAK: f64 = 0.15;

/// That many losses make the coefficient meaningful.
pub(crate) const LEAST_PEAKS: usize = 4;

/// Model-based congestion control (BBR) carries on at the path's rate up to about this much loss.
pub(crate) const MODEL_LOSS: f64 = 0.10;

/// A sender that is not known, and is so much faster than losses allow both Reno and CUBIC to be, is none of them: seen
/// are factors below 2 for these and above 5 for BBR at 1 % of loss.
pub(crate) const BEYOND_LOSS: f64 = 3.0;

/// ... from this much loss on, in the second half of the time: what was lost in the opening says nothing.
pub(crate) const BEYOND_LOSS_LEAST: f64 = 0.005;

/// ... and its mean rate, with the pauses of its probing (200 ms in 10 s), stays above this part of its plateau.
pub(crate) const MODEL_LEVEL: f64 = 0.8;

/// A congestion window that ends this much larger than it began is growing.
pub(crate) const GROWING: f64 = 1.02;

/// ... but not where what is in flight never reaches this part of it: Linux lets a window grow only while it is used up, in slow start
/// while more than half of it is in flight (`tcp_is_cwnd_limited`). The last step goes beyond that.
pub(crate) const WINDOW_GROWS: f64 = 0.5;

/// A round trip inflated by this much shows that a growing window fills a queue and no longer the path: 3 % is three
/// times what a loaded lab adds at 40 ms.
pub(crate) const QUEUE_FACTOR_SLIGHT: f64 = 1.03;

/// Segments that a connection may begin with (RFC 6928, section 2).
pub(crate) const INITIAL_SEGMENTS: f64 = 10.0;

/// A sender that heeds losses, is faster than they allow by this factor and loses in bursts is held by a policer: seen are 1.7 to 7
/// behind policers of 5 to 25 Mbit/s, 0.7 to 1.4 where chance takes one segment in a hundred or a thousand.
pub(crate) const POLICED_BEYOND: f64 = 1.5;

/// A policer drops at least this part once its bucket is empty ...
pub(crate) const POLICED_LOSS: f64 = 0.015;

/// ... and let this much more than the later rate through before (Flach 2016: token bucket after an initial burst).
pub(crate) const POLICED_BURST: f64 = 1.3;

/// ... and holds the later rate within `AGREEMENT` of its mean for this part of the time.
pub(crate) const POLICED_LEVEL: f64 = 0.8;

/// ... and this many segments at a time: all that is above its rate for a round trip, where chance takes one ...
pub(crate) const POLICED_BURST_SEGMENTS: f64 = 3.0;

/// ... and of no fewer segments than this, lest chance be taken for it: of 15 expected, 11 to 19 is what one sees.
pub(crate) const POLICED_LEAST: f64 = 15.0;

/// ... and where only counters tell, so many of them in a loss event (median and mean): one segment lost by chance long after the burst that ended
/// slow start would pass for one of many.
pub(crate) const POLICED_AT_ONCE: f64 = 2.0;

/// So many rates between loss events agree then, where of those between single losses it takes `LEAST_PEAKS`.
pub(crate) const POLICED_LEAST_EVENTS: usize = 2;

/// At least this part of the retransmissions came back as duplicate SACKs: not lost but late.
pub(crate) const SPURIOUS: f64 = 0.5;

/// ... and of all segments, fewer than this part were retransmitted for a reason: on paths that reorder and lose nothing 99 to
/// 100 % come back, where a timer repeats what was in flight about half.
pub(crate) const REORDERED_LOSS: f64 = 0.01;

/// Fewer retransmissions than this say nothing about reordering: a tail-loss probe makes one too.
pub(crate) const LEAST_SPURIOUS: f64 = 5.0;

/// What gets through is counted from one loss to the next that is this part of a round trip later, or a whole one, and this long, so
/// that single segments don't count as rates.
pub(crate) const POLICED_ROUND_TRIPS: [f64; 2] = [0.25, 1.0];
pub(crate) const POLICED_LEAST_US: f64 = 5_000.0;

/// What is left out, because a sender rested in between, may be so many times what is counted: 40 times behind a short queue that drops the
/// first burst of each piece of a video.
pub(crate) const POLICED_LEFT_OUT: f64 = 4.0;

/// The rate of the bucket is this quantile of the rates, by time.
pub(crate) const POLICED_QUANTILE: f64 = 0.9;

/// So many of them that are the same to within this part are a bucket's, also where the sender is below its rate for most of the time
/// (12 of 15 within 6 % behind a policer of 14 Mbit/s under CUBIC); chance scatters them by a factor.
pub(crate) const POLICED_SAME: f64 = 0.1;
pub(crate) const POLICED_SAME_LEAST: usize = 8;

/// A bucket lets so much through before it is empty, as time at its rate, and so many segments: how they fall into the time of a sample makes
/// up to two of a link's rate, ...
pub(crate) const POLICED_BUCKET_US: f64 = 10_000.0;
pub(crate) const POLICED_BUCKET_SEGMENTS: f64 = 3.0;

/// ... which is more than what comes behind a loss has to wait by this factor: what a queue takes up beyond its rate has to
/// wait for as long.
pub(crate) const POLICED_BY_WAIT: f64 = 3.0;

/// ... or nothing waits behind a loss: less than so many segments, which no queue is full with, ...
pub(crate) const POLICED_QUEUED_SEGMENTS: f64 = 2.0;

/// ... and for most of the time the losses come this many round trips apart.
pub(crate) const POLICED_APART_ROUND_TRIPS: f64 = 4.0;

/// Connections share a bottleneck where what gets through of all of them, from one loss to another that is so many round trips later, is the same
/// over the short and over the long of these: what chance adds up to grows with time.
pub(crate) const SHARED_ROUND_TRIPS: [f64; 2] = [8.0, 24.0];

/// ... in so many such times at least (where there are fewer long ones, the short ones have to do) ...
pub(crate) const SHARED_LEAST: [usize; 2] = [8, 4];

/// ... which are longer than that by this factor at the most: in longer ones the bucket may have been full, ...
pub(crate) const SHARED_APART: f64 = 4.0;

/// ... to within this part of what they have in flight, each for itself (root of the sum of squares), and so many segments, for `POLICED_LEVEL`
/// of the time. Seen are 0.8 and more of it behind policers and full links, 0.4 and less where chance takes segments of up to thirty connections.
pub(crate) const SHARED_UNCERTAINTY: f64 = 1.0;
pub(crate) const SHARED_SEGMENTS: f64 = 2.0;

/// ... or nine of ten of them carry no more than this part above their median, over the root of how many connections there are, and no more than
/// that part. A full link never carries more, and less when its queue has run empty: seen are 0.00 to 0.18 of 12 to 64 connections, and 0.4 and
/// more where chance takes segments. Of fewer than so many times less is known (0.19 of ten by chance), and it has to be less in proportion.
pub(crate) const SHARED_CREST: f64 = 0.2;
pub(crate) const SHARED_CREST_MOST: f64 = 0.03;
pub(crate) const SHARED_CREST_TIMES: f64 = 16.0;

/// ... while what comes behind a loss has waited for this part of the round trip of the empty path: a queue of half of a product shows as 0.34 and
/// more.
pub(crate) const SHARED_STANDING: f64 = 0.25;

/// It is a policer where less than so many segments wait behind a loss, of all of them (a queue of four segments at 4 Mbit/s shows as 2.4), and
/// a link from `POLICED_QUEUED_SEGMENTS` and this time on; in between, only a bucket tells.
pub(crate) const SHARED_QUEUED_SEGMENTS: f64 = 1.0;
pub(crate) const SHARED_QUEUE_US: f64 = 1_000.0;

/// Who carries less than this part of all doesn't count as one of several, or of many less than this part of an equal share.
pub(crate) const SHARED_PART: f64 = 0.02;
pub(crate) const SHARED_PART_OF_EQUAL: f64 = 0.5;

/// A processor busier than this has nothing left (the rest is idle time between its wake-ups).
pub(crate) const CPU_BUSY: f64 = 0.95;

/// A sender that paces at less than this factor of its rate is held by its pacing, not by its processor.
pub(crate) const PACED: f64 = 1.5;

/// An acknowledgement that takes this much longer than a round trip was delayed on purpose: timers are 40 ms (Linux) to
/// 200 ms (Windows, BSD), and must be below 500 ms (RFC 9293, section 3.8.6.3).
pub(crate) const ACK_DELAY_US: std::ops::RangeInclusive<f64> = 25_000.0..=500_000.0;

/// What holds for this part of an interval holds for it.
pub(crate) const MOST_OF_INTERVAL: f64 = 0.5;

/// The most in flight is flat when it stays the same for this many round trips ...
pub(crate) const FLAT_ROUND_TRIPS: f64 = 15.0;

/// ... to within so many segments: a buffer that is full holds the same number each time, give or take those that end a
/// write or wait for a second one. What congestion avoidance adds in as many round trips is several times that.
pub(crate) const FLAT_SEGMENTS: f64 = 2.0;

/// A level flight: for how many round trips, and whether to within half a segment.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Flat {
    pub(crate) round_trips: f64,
    pub(crate) is_exact: bool,
}

pub(crate) const FLAT_LONG: Flat = Flat { round_trips: FLAT_ROUND_TRIPS, is_exact: false };

/// ... or for this many to within half a segment: Reno adds four in as many, and CUBIC as many at least (RFC 9438, section 4.3).
pub(crate) const FLAT_SHORT: Flat = Flat { round_trips: 8.0, is_exact: true };

/// A window that gains a segment in several round trips goes up by no more than this at once.
pub(crate) const STEP_SEGMENTS: f64 = 3.5;

/// A buffer takes as much as it did before, give or take what the kernel charges for packets of other sizes (down to 0.47 is seen behind
/// one of 128 KB); a window that losses hold down doesn't (0.19).
pub(crate) const CEILING_OF_EARLIER: f64 = 0.33;

/// A flight is one write when it is as large to within this part of a segment.
pub(crate) const ONE_WRITE_SEGMENTS: f64 = 0.5;

/// ... or within this part, for buffers that are charged by the packet: Reno's growth over eight round trips of a window
/// of 800 segments.
pub(crate) const FLAT: f64 = 0.01;

/// ... unless the sender let room go by for this part of that time: then the application writes as much each time. A
/// sender with data waits for no more than its pacing or a wake-up.
pub(crate) const FLAT_STARVED: f64 = 0.05;

/// A flight of so few segments that stays as it is for so many round trips without a loss: a congestion window of any kind would
/// have doubled.
pub(crate) const FEW_SEGMENTS: f64 = 8.0;
pub(crate) const FEW_ROUND_TRIPS: f64 = 32.0;

/// Fewer segments than this in flight are a message, not a ceiling.
pub(crate) const LEAST_CEILING: f64 = 4.0;

/// ... or had nothing under way for this part of it: a buffer that is full is never empty.
pub(crate) const FLAT_IDLE: f64 = 0.1;

/// Beyond this part of segments lost, room that an acknowledgement makes isn't room: the congestion window shrinks with
/// it. An application that pauses loses nothing; a sender held by one loss in a hundred was starved by this measure for
/// up to three quarters of its time.
pub(crate) const STARVED_LOSS: f64 = 0.002;

/// A ceiling that the flight meets now and then only must be met in this many round trips ...
pub(crate) const MODE_ROUND_TRIPS: usize = 15;

/// ... to within this part, without growing by this part of a segment in each ...
pub(crate) const USUAL_SLACK: f64 = 0.06;
pub(crate) const GROWING_SEGMENTS: f64 = 0.45;

/// ... and this part of all, from early to late.
pub(crate) const MODE_SHARE: f64 = 0.5;

/// A writer that is woken by its send buffer ends this part of the pauses that no window ended: seen are 0.45 to 1 ...
pub(crate) const WOKEN: f64 = 0.4;

/// ... and where 32 KB were paced over 80 ms, 0.36, which was five times chance. Applications that wrote every 10 to 50 ms
/// were at 0 to 0.27, at most 2.7 times chance.
pub(crate) const WOKEN_LEAST: f64 = 0.3;
pub(crate) const WOKEN_BY_CHANCE: f64 = 3.0;

/// Where acknowledgements come so often that nearly all that is sent follows one, that says nothing.
pub(crate) const NO_CHANCE: f64 = 0.95;

/// An application that pauses sends this part of its payload long (4 ms) after the last acknowledgement: seen are 0.42 to
/// 0.98. A slow machine (an emulated one) with a full send buffer was at 0.07 to 0.3, and lwIP beside the receiver at 0.26 to 0.31.
pub(crate) const UNPROMPTED_PAUSES: f64 = 0.4;

/// ... and this part where its writes are of no one size, for it to be its own master: behind full buffers of 32 and 48 KB emulated
/// machines were at 0.49 and 0.51, applications of even writes at 0.44 to 0.98.
pub(crate) const OWN_MASTER: f64 = 0.6;

/// Writes that come as regularly as a timer, after this part of a round trip or sooner, are an application's: send buffers make their
/// writers as regular at 0.97 round trips and more (one write fills them), applications' were seen at 0.3 to 0.6.
pub(crate) const TIMED_ROUND_TRIP: f64 = 0.8;

/// A writer whose buffer takes one write is woken by its acknowledgement: the next comes after a round trip, and what a full link or a
/// slow machine adds (1.00 to 1.08 are seen where the acknowledgement alone doesn't tell).
pub(crate) const ONE_WRITE_TRIPS: std::ops::RangeInclusive<f64> = 0.97..=1.1;

/// What follows an acknowledgement within this was sent because of it, in microseconds (`capture` measures with the same).
pub(crate) const PROMPT_US: f64 = 500.0;

/// Fewer pauses than this say nothing ...
pub(crate) const LEAST_PAUSES: f64 = 4.0;

/// ... fewer than this nothing of the time in which there are none ...
pub(crate) const MANY_PAUSES: f64 = 16.0;

/// ... nor fewer for each round trip: a full buffer makes its writer pause in every second or third one, and in full links
/// of 20 Mbit/s there was one in ten.
pub(crate) const PAUSES_PER_ROUND_TRIP: f64 = 0.35;

/// Pauses are counted over this many round trips to either side.
pub(crate) const PAUSES_ROUND_TRIPS: f64 = 8.0;

/// A sender of which this part of the payload follows acknowledgements is clocked by them.
pub(crate) const PROMPTED: f64 = 0.7;

/// ... and more than by chance is by this factor.
pub(crate) const PROMPTED_BY_CHANCE: f64 = 1.3;

/// ... where it shows for this part of the payload when it was sent: behind a full link nothing does.
pub(crate) const SHOWN: f64 = 0.2;

/// That many waits for delayed acknowledgements are a pattern, however little was carried.
pub(crate) const LEAST_ACK_DELAYS: u64 = 10;

/// That many requests, each waited for, are a pattern, too.
pub(crate) const LEAST_EXCHANGES: u64 = 10;

/// A path that is empty for this part of the time because the next request is on its way is worth naming.
pub(crate) const ASKED_SHARE: f64 = 0.1;

/// From this part of the payload on that was sent while no acknowledgement made room for it, and with neither a queue nor
/// a ceiling, the sender had room all the time: its application set the pace. One that wrote every 10 ms over a path of
/// 40 ms was at 0.39 (beside the receiver) and 0.46; full paths of 10 Mbit/s and more stay below 0.03.
pub(crate) const UNPROMPTED: f64 = 0.35;

/// Of what a sender sends, this part within so many microseconds (`capture` measures with the same) after a message of the
/// receiver's application speaks of a window of the applications: OpenSSH with its 2 MB was at 0.25 to 0.48, nothing else
/// above 0.1, ...
pub(crate) const CREDITED: f64 = 0.2;
pub(crate) const CREDIT_US: f64 = 1_000.0;

/// ... this many times what chance makes of it, and not of a few messages.
pub(crate) const CREDITED_BY_CHANCE: f64 = 1.5;
pub(crate) const LEAST_CREDITS: f64 = 50.0;

/// A sender that paces at a rate of its own sends as much in each two round trips, to within this part: `SO_MAX_PACING_RATE`
/// was at 2 %, by one burst, ...
pub(crate) const EVEN_SLACK: f64 = 0.03;

/// ... in this part of them, after this part of the time, ...
pub(crate) const EVEN_SHARE: f64 = 0.95;
pub(crate) const EVEN_FROM: f64 = 0.1;

/// ... and at least so many segments.
pub(crate) const EVEN_LEAST: f64 = 8.0;

/// A window that is used up for this part of the time around a moment is what the sender's pauses there are about.
pub(crate) const HELD_AROUND: f64 = 0.2;

/// A ceiling of the sender's own is this far below the offered window.
pub(crate) const CAP_BELOW_WINDOW: f64 = 0.8;

/// The offered window counts as standing at its ceiling from this part of 65,535 << shift on.
pub(crate) const WINDOW_CEILING: f64 = 0.98;

/// With scale shift 0 the header is the ceiling from this part of 65,535 on (Windows Server 2012 offers 64,512).
pub(crate) const UNSCALED_FULL: f64 = 0.9;

/// Received and unread data at this part of the receive window: the application reads too slowly.
pub(crate) const UNREAD: f64 = 0.5;

/// A window that is used up below this part of what it was before is one of which unread data takes the rest: a fixed buffer that is
/// read at once keeps 0.99 and more, slow readers of 1 to 20 Mbit/s left 0.07 to 0.79.
pub(crate) const SHRUNK: f64 = 0.85;

/// ... in this part of the samples: an application that reads at once never lets its window shrink to half.
pub(crate) const FILLING: f64 = 0.15;

/// A segment that carries less than this part of what the path's MTU allows is small.
pub(crate) const SMALL_MSS: f64 = 0.6;

/// IPv4 and TCP without options: what an MSS leaves out of the MTU (RFC 6691).
pub(crate) const HEADERS: f64 = 40.0;

/// Timeouts in a row that make a black hole likely (RFC 2923, section 2.1).
pub(crate) const BLACK_HOLE_TIMEOUTS: u64 = 3;

/// The arithmetic agrees with the measurement within this part.
pub(crate) const AGREEMENT: f64 = 0.2;

/// A limiter that held for this part of the time is a clear verdict.
pub(crate) const CLEAR_SHARE: f64 = 0.5;

/// So much faster than a window or a buffer allows is more than bursts and rounding ...
pub(crate) const ABOVE_BOUND: f64 = 1.3;

/// ... and this much leaves nothing of the verdict.
pub(crate) const FAR_ABOVE_BOUND: f64 = 2.0;

/// Of the time that a congestion window held a sender, a reason that holds for this part is the reason for the rest, too, where none shows.
pub(crate) const KNOWN_PART: f64 = 0.25;

/// What comes so much later than the path takes waited for the application to read: more than a host is busy otherwise, in microseconds ...
pub(crate) const READ_LATE_US: f64 = 5_000.0;

/// A receiver that acknowledges so much of its window at once doesn't acknowledge every second full segment (RFC 5681, section 4.2) ...
pub(crate) const READ_AT_ONCE: f64 = 0.25;

/// ... and then this factor and so much time are late enough: no queue lets a receiver acknowledge so, and cards that merge
/// segments do so at rates at which the whole window takes less time.
pub(crate) const READ_LATE_WHOLE: (f64, f64) = (1.05, 3_000.0);

/// A receiver that acknowledges so many full segments at once, or fewer, does so on arrival.
pub(crate) const PAIR_SEGMENTS: f64 = 2.5;

/// A sender with nothing in flight for this part of the time has an application that writes no more meanwhile.
pub(crate) const EMPTIED: f64 = 0.2;

/// Shares that are no further apart read the same once they are rounded.
pub(crate) const SAME_SHARE: f64 = 0.01;

/// A link is full while its queue stands: before this part at least of what all connections have in flight (it is one queue, but not each of them
/// shows it all the time), and for this part of the time, round trips are longer than over the empty path by `QUEUE_FACTOR` and by this time, ...
pub(crate) const SHARED_QUEUED: f64 = 0.5;
pub(crate) const SHARED_QUEUED_TIME: f64 = 0.5;
pub(crate) const SHARED_QUEUED_TIME_SHORT: f64 = 0.75;
pub(crate) const SHARED_STANDING_US: f64 = 3_000.0;

/// (how long the handshake took tells of the queue for so many times as long, where nothing later does), ...
pub(crate) const SHARED_HANDSHAKE: f64 = 8.0;

/// (a connection that is over after so many round trips may have been opening its congestion window for all of its time) ...
pub(crate) const SHARED_SHORT: f64 = 16.0;

/// ... and it carries the same over each so many round trips, to within this part of it and `SHARED_SEGMENTS` times the root of how many
/// connections there are, for `POLICED_LEVEL` of the time. Of full links nine of ten are the same to within 1 or
/// 2 %, or a few segments.
pub(crate) const SHARED_QUEUED_ROUND_TRIPS: f64 = 4.0;
pub(crate) const SHARED_QUEUED_UNEVEN: f64 = 0.05;

/// The link that connections leave their sender by is full where what all of them send is the same over times of so many segments and so many
/// microseconds, to within `SHARED_QUEUED_UNEVEN` and `SHARED_SEGMENTS`, in so many of them and for so much of the time. Seen are 0.84 to 0.97
/// behind shapers of 5 to 500 Mbit/s, 0.52 and 0.56 where their clients left them idle at times, 0.20 to 0.48 of servers that wait for their
/// processor, 0.32 to 0.80 where each connection is paced, and 0.04 to 0.19 of flights over a path that isn't full.
pub(crate) const OWN_LINK_SEGMENTS: f64 = 64.0;
pub(crate) const OWN_LINK_US: f64 = 10_000.0;
pub(crate) const OWN_LINK_LEAST: usize = 20;
pub(crate) const OWN_LINK_LEVEL: f64 = 0.7;

/// ... and that is steadier by this factor than what each one of them sends times how many are sending (medians), where that is another number
/// than usual by this part, but not less than that part of it, in so many of those times: seen are 0.04 to 0.29 behind full links, and 0.83 and
/// more where each one is paced.
pub(crate) const OWN_LINK_STEADIER: f64 = 0.5;
pub(crate) const OWN_LINK_OTHERS: f64 = 0.05;
pub(crate) const OWN_LINK_FEW: f64 = 0.5;
pub(crate) const OWN_LINK_TELLING: usize = 8;

/// ... (when nearly all of what they send left has to be known more finely than those times, by this factor) ...
pub(crate) const OWN_LINK_KNOWN: f64 = 0.75;
pub(crate) const OWN_LINK_FINER: f64 = 4.0;

/// ... and this part of what they send at least is of such as may have waited for it: alone, the others seem to fill the path (seen are 0.39 and
/// more, 0.18 of long transfers).
pub(crate) const OWN_LINK_WAITING: f64 = 0.25;

/// A connection that seems, beside its receiver, to be held by its application may be one of those that fill the link where what arrives of it
/// is the same over eight round trips, to within `SHARED_QUEUED_UNEVEN` and a segment, for this part of the time: seen are 0.6 and more of
/// downloads that lost nothing, and 0.1 to 0.4 of streams whose application keeps to a rate (0.9 of one in nine).
pub(crate) const SHARED_CLOCKED: f64 = 0.5;
