//! At how many places captures were taken: those of one place follow each other, so one that begins before another ends was
//! taken elsewhere, such as at the other end. What a place saw of a connection is followed apart; together, each packet
//! would count twice, and each way to the other place as a delay of the path.

use fullpipe_capture::{Flow, Segment, Sink, TooBig};

/// When the last segment of each place was captured.
#[derive(Debug, Default)]
pub(crate) struct Places {
    ends_ns: Vec<u64>,
}

impl Places {
    /// The sink for the next capture.
    pub(crate) const fn next<'a, S>(&'a mut self, sink: &'a mut S) -> AtPlace<'a, S> {
        AtPlace { places: self, place: None, sink }
    }

    /// The first place whose captures have ended at `first_ns`, or a new one.
    fn find(&mut self, first_ns: u64) -> usize {
        self.ends_ns.iter().position(|end_ns| *end_ns <= first_ns).unwrap_or_else(|| {
            self.ends_ns.push(0);
            self.ends_ns.len() - 1
        })
    }
}

/// Hands on what one capture holds, its flows marked by their place.
#[derive(Debug)]
pub(crate) struct AtPlace<'a, S> {
    places: &'a mut Places,
    /// Which, and when its first segment was captured.
    place: Option<(usize, u64)>,
    sink: &'a mut S,
}

impl<S> AtPlace<'_, S> {
    /// The place, from 0 in the order of the captures; 0 where nothing was seen.
    pub(crate) fn place(&self) -> usize {
        self.place.map_or(0, |(place, _)| place)
    }

    /// From its first segment to the last one, in nanoseconds.
    pub(crate) fn lasted_ns(&self) -> u64 {
        self.place.map_or(0, |(place, first_ns)| self.places.ends_ns[place].saturating_sub(first_ns))
    }

    fn flow(&mut self, flow: Flow, at_ns: u64) -> Flow {
        let (place, _) = *self.place.get_or_insert_with(|| (self.places.find(at_ns), at_ns));
        let end_ns = &mut self.places.ends_ns[place];
        *end_ns = at_ns.max(*end_ns);
        // An odd factor, so that no two places have the same mark; the first has none.
        Flow { outer: flow.outer ^ (place as u32).wrapping_mul(0x9e37_79b9), ..flow }
    }
}

impl<S: Sink> Sink for AtPlace<'_, S> {
    #[inline]
    fn segment(&mut self, segment: &Segment<'_>) {
        match self.flow(segment.flow, segment.at_ns) {
            flow if flow == segment.flow => self.sink.segment(segment),
            flow => self.sink.segment(&Segment { flow, ..*segment }),
        }
    }

    fn too_big(&mut self, notice: &TooBig) {
        let about = self.flow(notice.about, notice.at_ns);
        self.sink.too_big(&TooBig { about, ..*notice });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_follows_is_of_one_place_and_what_overlaps_of_another() {
        let mut places = Places::default();
        let mut take = |first_ns: u64, last_ns: u64| {
            let place = places.find(first_ns);
            places.ends_ns[place] = last_ns;
            place
        };
        // Two hosts, each with a capture that was rotated.
        assert_eq!([take(10, 20), take(11, 21), take(20, 30), take(21, 31), take(12, 13)], [0, 1, 0, 1, 2]);
    }
}
