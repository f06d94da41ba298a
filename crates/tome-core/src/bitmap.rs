//! A bitmap of places in use that finds the first free one quickly.
//!
//! Not here: what the places are.

/// Places, in use or free.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Bitmap {
    words: Vec<u64>,
    places: usize,
    taken: usize,
    /// No place of an earlier word is free.
    first: usize,
}

impl Bitmap {
    /// Returns a bitmap of free places.
    pub(crate) fn new(places: usize) -> Self {
        Self { words: vec![0; places.div_ceil(64)], places, taken: 0, first: 0 }
    }

    pub(crate) const fn free(&self) -> usize {
        self.places - self.taken
    }

    pub(crate) fn has(&self, place: usize) -> bool {
        self.words[place / 64] >> (place % 64) & 1 == 1
    }

    pub(crate) fn take(&mut self, place: usize) {
        let (word, bit) = (place / 64, 1 << (place % 64));
        assert!(place < self.places, "place {place} is not below {}", self.places);
        assert!(self.words[word] & bit == 0, "place {place} is already taken");
        self.words[word] |= bit;
        self.taken += 1;
    }

    pub(crate) fn give_back(&mut self, place: usize) {
        let (word, bit) = (place / 64, 1 << (place % 64));
        assert!(self.words[word] & bit != 0, "place {place} is already free");
        self.words[word] &= !bit;
        self.taken -= 1;
        self.first = self.first.min(word);
    }

    /// Takes the first free place that is allowed.
    pub(crate) fn take_first(&mut self, allowed: impl Fn(usize) -> bool) -> Option<usize> {
        while self.words.get(self.first).is_some_and(|word| *word == u64::MAX) {
            self.first += 1;
        }
        let words = self.words.iter().enumerate().skip(self.first);
        let free = words.flat_map(|(word, taken)| {
            (0..64).filter(move |bit| taken >> bit & 1 == 0).map(move |bit| word * 64 + bit)
        });
        let place = free.take_while(|place| *place < self.places).find(|place| allowed(*place))?;
        self.take(place);
        Some(place)
    }
}
