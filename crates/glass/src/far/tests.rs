//! A far library in memory for tests, which can be unavailable, lose and corrupt platters; and
//! reads from one.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};

use super::*;

/// Platters in memory.
#[derive(Debug, Default)]
pub(crate) struct Memory {
    state: Mutex<State>,
    /// Number of answered reads.
    pub(crate) reads: AtomicU64,
}

#[derive(Debug, Default)]
struct State {
    name: String,
    platters: BTreeMap<PlatterId, Vec<u8>>,
    is_away: bool,
    /// Whether it corrupts what it stores.
    is_corrupting: bool,
}

impl Memory {
    pub(crate) fn named(name: &'static str) -> Arc<Self> {
        let state = State { name: name.to_owned(), ..State::default() };
        Arc::new(Self { state: Mutex::new(state), reads: AtomicU64::new(0) })
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn set_away(&self, is_away: bool) {
        self.lock().is_away = is_away;
    }

    pub(crate) fn set_corrupting(&self, is_corrupting: bool) {
        self.lock().is_corrupting = is_corrupting;
    }

    pub(crate) fn platters(&self) -> BTreeMap<PlatterId, Vec<u8>> {
        self.lock().platters.clone()
    }

    pub(crate) fn lose(&self, platter: PlatterId) {
        self.lock().platters.remove(&platter);
    }

    fn here(&self) -> Result<std::sync::MutexGuard<'_, State>> {
        let state = self.lock();
        if state.is_away {
            let (library, what) = (state.name.clone(), "it is away".to_owned());
            return Err(GlassError::FarUnavailable { library, what });
        }
        Ok(state)
    }
}

impl FarLibrary for Memory {
    fn name(&self) -> &str {
        // Leaked, once per test: a name is borrowed for as long as the library lives.
        Box::leak(self.lock().name.clone().into_boxed_str())
    }

    fn put(&self, platter: PlatterId, bytes: u64, read: ReadPlatter<'_>) -> Result<()> {
        let mut whole = vec![0; usize::try_from(bytes).unwrap()];
        let half = whole.len() / 2;
        read(0, &mut whole[..half])?;
        read(half as u64, &mut whole[half..])?;
        let mut state = self.here()?;
        if state.is_corrupting {
            whole[half] ^= 1;
        }
        state.platters.insert(platter, whole);
        Ok(())
    }

    fn bytes(&self, platter: PlatterId) -> Result<Option<u64>> {
        Ok(self.here()?.platters.get(&platter).map(|bytes| bytes.len() as u64))
    }

    fn read_at(&self, platter: PlatterId, offset: u64, buffer: &mut [u8]) -> Result<()> {
        self.reads.fetch_add(1, Ordering::SeqCst);
        let state = self.here()?;
        let from = usize::try_from(offset).unwrap();
        let found = state.platters.get(&platter).and_then(|b| b.get(from..from + buffer.len()));
        let library = state.name.clone();
        let gone = || GlassError::FarUnavailable { library, what: "it is gone".to_owned() };
        buffer.copy_from_slice(found.ok_or_else(gone)?);
        Ok(())
    }

    fn platters(&self) -> Result<Vec<PlatterId>> {
        Ok(self.here()?.platters.keys().copied().collect())
    }
}

#[test]
fn far_platter_is_read_in_windows_up_to_its_end() {
    let memory = Memory::named("oslo");
    let platter = PlatterId::from_bytes([3; 16]);
    let bytes: Vec<u8> = (0..FAR_WINDOW_BYTES + 1000).map(|at| (at % 251) as u8).collect();
    let mut read = |offset: u64, buffer: &mut [u8]| {
        let from = usize::try_from(offset).unwrap();
        buffer.copy_from_slice(&bytes[from..from + buffer.len()]);
        Ok(())
    };
    memory.put(platter, bytes.len() as u64, &mut read).unwrap();
    let library: Arc<dyn FarLibrary> = Arc::clone(&memory) as _;
    let source = FarSource::open(&library, platter).unwrap();
    let mut buffer = [0; 500];
    let window = usize::try_from(FAR_WINDOW_BYTES).unwrap();
    for offset in [0, 100, 4000, bytes.len() - 500, window - 200] {
        source.read_at(offset as u64, &mut buffer).unwrap();
        assert_eq!(buffer[..], bytes[offset..offset + 500]);
    }
    assert_eq!(memory.reads.load(Ordering::SeqCst), 3, "the first three lie in one window");
    let beyond = source.read_at(bytes.len() as u64 - 499, &mut buffer).unwrap_err();
    assert_eq!(beyond.kind(), std::io::ErrorKind::UnexpectedEof);
    assert!(source.read_at(u64::MAX, &mut buffer).is_err());
    memory.set_away(true);
    let away = source.read_at(0, &mut buffer).unwrap_err().to_string();
    assert!(away.contains("oslo") && away.contains("away"), "{away}");
    memory.set_away(false);
    memory.lose(platter);
    let gone = FarSource::open(&library, platter).unwrap_err();
    assert!(matches!(gone, GlassError::PlatterUnreadable { .. }), "{gone}");
}
