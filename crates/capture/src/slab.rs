//! A list that grows without moving what is in it. What is *not* here: freeing single elements.
//!
//! Doubling a `Vec` needs room for both for a moment, and copies what is aligned to lines of the cache.

/// Elements of one block: with those of 128 bytes, 512 KiB. An allocator maps blocks of that size one by one, and only what
/// is used of one takes memory; smaller ones grow the heap of a thread in steps of a few pages, with a call of the kernel
/// for each.
const BLOCK: usize = 1 << SHIFT;
const SHIFT: u32 = 12;

/// A growing list.
#[derive(Clone, Debug)]
pub(crate) struct Slab<T> {
    /// Each but the last one is full.
    blocks: Vec<Vec<T>>,
}

impl<T> Default for Slab<T> {
    fn default() -> Self {
        Self { blocks: Vec::new() }
    }
}

impl<T> Slab<T> {
    pub(crate) const fn len(&self) -> usize {
        match self.blocks.as_slice() {
            [] => 0,
            [full @ .., last] => full.len() * BLOCK + last.len(),
        }
    }

    /// Adds an element; tells its number.
    pub(crate) fn push(&mut self, value: T) -> u32 {
        let number = self.len();
        if number.is_multiple_of(BLOCK) {
            self.blocks.push(Vec::with_capacity(BLOCK));
        }
        if let Some(last) = self.blocks.last_mut() {
            last.push(value);
        }
        number as u32
    }

    #[inline]
    pub(crate) fn get(&self, number: u32) -> Option<&T> {
        self.blocks.get((number >> SHIFT) as usize)?.get(number as usize % BLOCK)
    }

    #[inline]
    pub(crate) fn get_mut(&mut self, number: u32) -> Option<&mut T> {
        self.blocks.get_mut((number >> SHIFT) as usize)?.get_mut(number as usize % BLOCK)
    }
}
