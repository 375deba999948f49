//! A map of bounded size, for what is remembered of offers: old ones give way to new ones.

use hashlink::LinkedHashMap;
use serde::{Deserialize, Serialize};
use std::borrow::Borrow;
use std::hash::Hash;

/// A map that drops its oldest key when it is full. Replacing the value of a key does
/// not make the key younger.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct BoundedMap<K: Eq + Hash, V> {
    limit: usize,
    values: LinkedHashMap<K, V>,
}

impl<K: Eq + Hash, V> BoundedMap<K, V> {
    pub fn new(limit: usize) -> Self {
        BoundedMap { limit, values: LinkedHashMap::new() }
    }

    pub fn insert(&mut self, key: K, value: V) {
        self.values.replace(key, value);
        while self.values.len() > self.limit {
            self.values.pop_front();
        }
    }

    pub fn get<Q: Eq + Hash + ?Sized>(&self, key: &Q) -> Option<&V>
    where
        K: Borrow<Q>,
    {
        self.values.get(key)
    }

    pub fn get_mut<Q: Eq + Hash + ?Sized>(&mut self, key: &Q) -> Option<&mut V>
    where
        K: Borrow<Q>,
    {
        self.values.get_mut(key)
    }

    pub fn remove<Q: Eq + Hash + ?Sized>(&mut self, key: &Q) -> Option<V>
    where
        K: Borrow<Q>,
    {
        self.values.remove(key)
    }

    pub fn contains_key<Q: Eq + Hash + ?Sized>(&self, key: &Q) -> bool
    where
        K: Borrow<Q>,
    {
        self.values.contains_key(key)
    }

    pub fn len(&self) -> usize {
        self.values.len()
    }

    pub fn is_empty(&self) -> bool {
        self.values.is_empty()
    }

    /// Every value, the one with the oldest key first.
    pub fn into_values(self) -> impl Iterator<Item = V> {
        self.values.into_iter().map(|(_, value)| value)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(pairs: &[(&'static str, u32)]) -> BoundedMap<&'static str, u32> {
        let mut map = BoundedMap::new(2);
        pairs.iter().for_each(|(key, value)| map.insert(*key, *value));
        map
    }

    #[test]
    fn the_oldest_key_gives_way_and_a_replaced_value_keeps_its_keys_age() {
        let map = of(&[("a", 1), ("b", 2), ("a", 3), ("c", 4)]);
        assert_eq!((map.get("a"), map.get("b"), map.get("c")), (None, Some(&2), Some(&4)));
        assert_eq!(map.into_values().collect::<Vec<_>>(), [2, 4]);
    }

    #[test]
    fn a_removed_key_comes_back_as_the_youngest() {
        let mut map = of(&[("a", 1), ("b", 2)]);
        assert_eq!((map.remove("a"), map.remove("a")), (Some(1), None));
        map.insert("a", 5);
        map.insert("c", 6);
        assert!(!map.contains_key("b") && map.contains_key("a") && map.len() == 2);
    }

    #[test]
    fn it_is_stored_and_read_in_its_order() {
        let map = BoundedMap { limit: 9, ..of(&[("z", 1), ("a", 2)]) };
        let json = serde_json::to_string(&map).unwrap();
        assert_eq!(json, r#"{"limit":9,"values":{"z":1,"a":2}}"#);
        let read: BoundedMap<String, u32> = serde_json::from_str(&json).unwrap();
        assert_eq!(read.into_values().collect::<Vec<_>>(), [1, 2]);
    }
}
