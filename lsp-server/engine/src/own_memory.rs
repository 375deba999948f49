//! The memory of a GPU that the engines of this process have taken. A daemon may hold two models,
//! and neither makes room for the other as it does for other programs.

use parking_lot::Mutex;

/// The share of a GPU's memory that was free behind the loaded model. If less of it is left, other
/// processes have taken the rest, and an idle model makes room for them.
const FREE_SHARE_MIN: f64 = 0.5;

static ACCOUNT: Mutex<Account> = Mutex::new(Account { taken: 0, loading: 0 });

/// What all engines of this process have taken together, in bytes. Two that are loaded at the same
/// time count each other's memory too, and then see more room than there is until one has gone.
#[derive(Debug)]
struct Account {
    taken: u64,
    /// Loads under way. What they take is not counted yet.
    loading: usize,
}

/// What is free on a GPU, and what this process has taken of it, in bytes.
#[derive(Debug, Clone, Copy)]
struct Room {
    free: u64,
    own: u64,
}

impl Room {
    /// Returns true if other processes have taken most of what was free then.
    fn is_crowded(self, now: Room) -> bool {
        let without_own = now.free as f64 + now.own as f64 - self.own as f64;
        without_own < FREE_SHARE_MIN * self.free as f64
    }
}

impl Account {
    /// Counts what a load has taken, and returns that and the room behind it.
    fn add(&mut self, free_before: u64, free: u64) -> (u64, Room) {
        let bytes = free_before.saturating_sub(free);
        self.taken += bytes;
        (bytes, Room { free, own: self.taken })
    }

    /// Whose the memory is that goes is not known while something is loaded.
    fn is_crowded(&self, behind: Room, free: u64) -> bool {
        self.loading == 0 && behind.is_crowded(Room { free, own: self.taken })
    }
}

/// A load under way.
pub struct Loading {
    free_before: u64,
}

impl Loading {
    pub fn begin(free: u64) -> Loading {
        ACCOUNT.lock().loading += 1;
        Loading { free_before: free }
    }

    /// Ends the load, which has left so much.
    pub fn end(self, free: u64) -> OwnMemory {
        let (bytes, behind) = ACCOUNT.lock().add(self.free_before, free);
        OwnMemory { bytes, behind }
    }
}

impl Drop for Loading {
    fn drop(&mut self) {
        ACCOUNT.lock().loading -= 1;
    }
}

/// The memory of one engine, as long as it is loaded.
pub struct OwnMemory {
    bytes: u64,
    behind: Room,
}

impl OwnMemory {
    /// Returns true if other processes have taken most of what was free behind the load.
    pub fn is_crowded(&self, free: u64) -> bool {
        ACCOUNT.lock().is_crowded(self.behind, free)
    }
}

impl Drop for OwnMemory {
    fn drop(&mut self) {
        let mut account = ACCOUNT.lock();
        account.taken = account.taken.saturating_sub(self.bytes);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_models_of_one_process_make_room_for_others_alone() {
        let mut account = Account { taken: 0, loading: 0 };
        let (first, behind_first) = account.add(100, 70);
        assert!(!account.is_crowded(behind_first, 70));
        assert!(account.is_crowded(behind_first, 34), "another process has taken 36");
        let (second, behind_second) = account.add(70, 30);
        assert_eq!((first, second, account.taken), (30, 40, 70));
        assert!(!account.is_crowded(behind_first, 30), "the second model has taken the rest");
        assert!(!account.is_crowded(behind_second, 30));
        assert!(!account.is_crowded(behind_second, 15));
        assert!(account.is_crowded(behind_second, 14));
        assert!(!account.is_crowded(behind_first, 14), "the second one's 40 do not count");
        account.taken -= first;
        assert!(!account.is_crowded(behind_second, 60), "the first has gone");
        assert!(account.is_crowded(behind_second, 44), "and others have come");
        account.loading = 1;
        assert!(!account.is_crowded(behind_second, 0), "it may be the model that is loaded");
    }

    #[test]
    fn what_is_taken_is_counted_as_long_as_it_is_held() {
        let memory = Loading::begin(100).end(70);
        assert!(memory.is_crowded(30) && !memory.is_crowded(40));
        let loading = Loading::begin(70);
        assert!(!memory.is_crowded(0));
        let other = loading.end(20);
        assert!(!memory.is_crowded(20));
        drop(memory);
        assert!(!other.is_crowded(50) && other.is_crowded(30));
        drop(other);
        assert_eq!(ACCOUNT.lock().taken, 0);
    }
}
