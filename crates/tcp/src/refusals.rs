//! What the RFCs ask for, or allow, and this engine does not do.
//!
//! | clause | what | why not |
//! |---|---|---|
//! | RFC 1122, 3.3.2; RFC 8200, 4.5 | reassembling fragments | TCP sends none (DF, MSS); reassembly lets strangers hold buffers of the pool. Fragments are dropped and counted. |
//! | RFC 9293, 3.8.5, MUST-30 to -33 | the urgent mechanism | RFC 6093, section 6: new applications should not use it. Urgent data is delivered in line, the pointer ignored, never sent. |
//! | RFC 9293, 3.8.6.1 | a zero-window probe of one octet | The probe is an empty segment from before the window, which the peer must answer just the same (3.10.7.4); so no byte is outstanding that it had no room for. Linux does the same. |
//! | RFC 9293, 3.10.1 | turning LISTEN into an active open | No interface of the time offers it. |
//! | RFC 9293, 3.10.7.4, first | a segment without data exactly at the right edge is unacceptable | A peer whose whole window is in flight sends its acknowledgements from there; refusing them would stall both. Linux accepts them too. A reset there is refused. |
//! | RFC 7323, 3.2 | dropping segments that lack an agreed timestamps option | Middleboxes strip options; the other checks stand. |
//! | RFC 9293, 3.8.3, MUST-23 | retransmitting a SYN for 3 minutes | Six retries (127 s) as Linux; a profile may say more. |
//! | RFC 9293, 3.4.3 | the quiet time after a crash | Initial numbers are keyed per start (RFC 6528); an old segment in the new window is as unlikely as a guess. |
//! | RFC 9293, 3.7.1, IP options and source routes (MUST-49, -50 and following) | passing IP options to and from the application | Routers drop such packets. |
//! | RFC 9293, 3.9.2.1, precedence and security | compartments | Obsolete (RFC 9293 itself keeps only the field). |
//! | RFC 5681, 3.1 | one segment of growth an ACK in slow start | Receivers and devices that merge segments send one ACK for many; [`Profile::slow_start_limit`](crate::profile::Profile::slow_start_limit) bounds it where wanted. |
//! | RFC 4821, 6.2 and 7.5 | delaying data until there is enough for a probe | Data never waits: a probe leaves when enough is queued. Without [`Profile::mtu_probing`](crate::profile::Profile::mtu_probing) a size that ICMP lowered is tried in full again after ten minutes (RFC 1191, 6.3). |
//! | RFC 5682, RFC 3522 | undoing a spurious timeout | Not yet. |
//! | RFC 7413, 4.1.2 | the peer's address alone in a cookie | Both addresses, as Linux has it: a host of several addresses gives several cookies. The key is changed by the caller ([`set_fast_open_key`](crate::stack::Stack::set_fast_open_key)), not by a timer. |
//! | RFC 7413, 5.1 | a count of fast-open requests under way beside the backlog, and of those that were reset | The backlog bounds both: what was reset before it was accepted stays in it until it is. |
//! | RFC 9293, 3.10.7.4, second | flushing what was received when a reset comes | What was acknowledged in order is still read, as on Linux and FreeBSD; then the reset is reported. |
//! | RFC 8985, 6.3 | marking only old segments lost at a timeout | Everything that was not SACKed is marked (RFC 6675, 5.1): simpler, and paid with spurious retransmissions only after a spurious timeout. |
//! | RFC 5227, 2.1; RFC 4862, 5.4 | looking for other owners of an own address before using it | Addresses are given by whoever sets the stack up. Claims to them are counted ([`LinkCounts::conflicts`](crate::link::LinkCounts::conflicts)), probes of others answered. |
//! | RFC 4861, 6 and 8 | router discovery, redirects | Gateways are given. What is not believed can't lead packets astray. |
//! | RFC 826 | taking over every claim about a known neighbour | A neighbour that works is replaced by the answer to an own question only: forged replies are ignored and counted. |
