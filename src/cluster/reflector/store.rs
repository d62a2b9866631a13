//! The cache of one kind of object: by key, and by the uid of the owner.
//!
//! Invariants
//! - Written by one reflector only; anybody may read. Readers never see half of a change.
//! - Every object in the index by owner is in the map by key, and the other way round for objects with an owner.
//! - An object whose owner's uid is empty or that has no owner is not in the index by owner; where the kind asks for it
//!   ([`Cached::UNOWNED_ARE_INDEXED`]), it is in that by namespace.
//! - Iteration is by namespace and name, children by name: the same content always reads the same.

use std::cmp::Ordering;
use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

use rustc_hash::FxHashMap;
use smallvec::SmallVec;

use super::Cached;
use crate::latest::Latest;
use crate::model::{ObjectKey, Uid};

/// The objects of one kind as last seen. Cheap to clone; clones are the same cache.
pub struct Store<T> {
    shared: Arc<Shared<T>>,
}

struct Shared<T> {
    state: RwLock<State<T>>,
    synced: Latest<bool>,
}

struct State<T> {
    objects: BTreeMap<ObjectKey, Entry<T>>,
    /// Children by the uid of their owner, sorted by key; never iterated.
    children: FxHashMap<Uid, SmallVec<[Arc<T>; 2]>>,
    /// Objects without an owner by namespace, if the kind asks for it.
    unowned: BTreeMap<Arc<str>, BTreeMap<Arc<str>, Arc<T>>>,
    /// Number of the list that is being, or was last, taken in.
    list: u32,
    /// Everything up to this resource version is shown; set after it is.
    version: Option<Box<str>>,
}

struct Entry<T> {
    object: Arc<T>,
    /// The last list that showed the object, or during or after which a watch did.
    list: u32,
}

/// What putting in an object did.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Put<T> {
    /// The same version was there already.
    Same,
    /// There was no object of that key.
    New,
    /// An older version was there.
    Update(Arc<T>),
    /// Another object was there under the same name.
    OtherUid(Arc<T>),
}

impl<T> Clone for Store<T> {
    fn clone(&self) -> Self {
        Self { shared: self.shared.clone() }
    }
}

impl<T> fmt::Debug for Store<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Store").field("len", &self.len()).field("synced", &self.has_synced()).finish()
    }
}

impl<T> Default for Store<T> {
    fn default() -> Self {
        let state = State {
            objects: BTreeMap::new(),
            children: FxHashMap::default(),
            unowned: BTreeMap::new(),
            list: 0,
            version: None,
        };
        Self { shared: Arc::new(Shared { state: RwLock::new(state), synced: Latest::new(false) }) }
    }
}

impl<T> Store<T> {
    /// How many objects there are.
    pub fn len(&self) -> usize {
        self.read().objects.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// How many owners have children here; each needs memory, so zero must follow when all objects are gone.
    pub fn owners(&self) -> usize {
        self.read().children.len()
    }

    /// Whether a full list has been taken in. Becomes false again when the kind vanishes from the server.
    pub fn has_synced(&self) -> bool {
        self.shared.synced.get()
    }

    /// Waits until a full list has been taken in.
    pub async fn synced(&self) {
        self.shared.synced.wait_for(|synced| *synced).await;
    }

    /// The object of that name.
    pub fn get(&self, key: &ObjectKey) -> Option<Arc<T>> {
        self.read().objects.get(key).map(|entry| entry.object.clone())
    }

    /// The objects whose controller is the object with uid `owner`, sorted by namespace and name.
    pub fn children(&self, owner: &Uid) -> Vec<Arc<T>> {
        self.read().children.get(owner).map(|children| children.to_vec()).unwrap_or_default()
    }

    /// The objects of a namespace without an owner, sorted by name; none where the kind does not index them.
    pub fn unowned(&self, namespace: &str) -> Vec<Arc<T>> {
        self.read().unowned.get(namespace).map(|objects| objects.values().cloned().collect()).unwrap_or_default()
    }

    /// The objects of a namespace, sorted by name.
    pub fn in_namespace(&self, namespace: &Arc<str>) -> Vec<Arc<T>> {
        let first = ObjectKey { namespace: namespace.clone(), name: "".into() };
        let state = self.read();
        let objects = state.objects.range(first..).take_while(|(key, _)| key.namespace == *namespace);
        objects.map(|(_, entry)| entry.object.clone()).collect()
    }

    /// All objects, sorted by namespace and name.
    pub fn list(&self) -> Vec<Arc<T>> {
        self.read().objects.values().map(|entry| entry.object.clone()).collect()
    }

    /// The resource version up to which everything is shown; `None` before the first full list.
    pub fn version(&self) -> Option<Box<str>> {
        self.read().version.clone()
    }

    pub(crate) fn set_version(&self, version: &str) {
        self.write().version = Some(version.into());
    }

    pub(crate) fn set_synced(&self, synced: bool) {
        self.shared.synced.set(synced);
    }

    fn read(&self) -> RwLockReadGuard<'_, State<T>> {
        self.shared.state.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn write(&self) -> RwLockWriteGuard<'_, State<T>> {
        self.shared.state.write().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<T: Cached> Store<T> {
    /// A full list begins: what it does not show is gone when it ends.
    pub(crate) fn begin_list(&self) {
        let mut state = self.write();
        state.list = state.list.wrapping_add(1);
    }

    /// The list is complete: takes out and returns, in order of keys, what it did not show.
    pub(crate) fn end_list(&self) -> Vec<Arc<T>> {
        let mut state = self.write();
        let list = state.list;
        let gone = |entry: &Entry<T>| entry.list != list;
        let keys: Vec<_> = state.objects.iter().filter(|(_, e)| gone(e)).map(|(key, _)| key.clone()).collect();
        keys.iter().filter_map(|key| state.remove(key)).collect()
    }

    /// Takes out and returns, in order of keys, everything.
    pub(crate) fn clear(&self) -> Vec<Arc<T>> {
        self.begin_list();
        self.end_list()
    }

    pub(crate) fn put(&self, new: &Arc<T>) -> Put<T> {
        self.write().put(new)
    }

    pub(crate) fn remove(&self, key: &ObjectKey) -> Option<Arc<T>> {
        self.write().remove(key)
    }
}

impl<T: Cached> State<T> {
    fn put(&mut self, new: &Arc<T>) -> Put<T> {
        let entry = Entry { object: new.clone(), list: self.list };
        let Some(old) = self.objects.get_mut(new.key()) else {
            self.objects.insert(new.key().clone(), entry);
            self.index(new);
            return Put::New;
        };
        let same_uid = old.object.uid() == new.uid();
        if same_uid && old.object.resource_version() == new.resource_version() {
            old.list = self.list;
            return Put::Same;
        }
        let old = std::mem::replace(old, entry).object;
        self.unindex(&old);
        self.index(new);
        if same_uid { Put::Update(old) } else { Put::OtherUid(old) }
    }

    fn remove(&mut self, key: &ObjectKey) -> Option<Arc<T>> {
        let old = self.objects.remove(key)?.object;
        self.unindex(&old);
        Some(old)
    }

    fn index(&mut self, object: &Arc<T>) {
        let Some(owner) = object.owner().filter(|uid| !uid.is_empty()) else {
            if T::UNOWNED_ARE_INDEXED {
                let ObjectKey { namespace, name } = object.key().clone();
                self.unowned.entry(namespace).or_default().insert(name, object.clone());
            }
            return;
        };
        let siblings = self.children.entry(owner.clone()).or_default();
        if let Err(at) = siblings.binary_search_by(|sibling| sibling.key().cmp(object.key())) {
            siblings.insert(at, object.clone());
        }
    }

    fn unindex(&mut self, object: &Arc<T>) {
        let Some(owner) = object.owner().filter(|uid| !uid.is_empty()) else {
            if let Some(objects) = self.unowned.get_mut(&object.key().namespace) {
                objects.remove(&object.key().name);
                if objects.is_empty() {
                    self.unowned.remove(&object.key().namespace);
                }
            }
            return;
        };
        let Some(siblings) = self.children.get_mut(owner) else { return };
        siblings.retain(|sibling| sibling.key().cmp(object.key()) != Ordering::Equal);
        if siblings.is_empty() {
            self.children.remove(owner);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cluster::testing::Thing;

    fn put(store: &Store<Thing>, thing: Thing) -> Put<Thing> {
        store.put(&Arc::new(thing))
    }

    #[test]
    fn children_follow_their_owner_and_are_sorted_by_name() {
        let store = Store::default();
        for (name, version) in [("c", "1"), ("a", "2"), ("b", "3")] {
            put(&store, Thing::new("ns", name, version).owned_by("o1"));
        }
        let names = |owner: &str| -> Vec<String> {
            store.children(&owner.to_owned().into()).iter().map(|t| t.key.name.to_string()).collect()
        };
        assert_eq!(names("o1"), ["a", "b", "c"]);
        put(&store, Thing::new("ns", "b", "4").owned_by("o2"));
        assert_eq!((names("o1"), names("o2")), (vec!["a".into(), "c".into()], vec!["b".into()]));
        store.clear();
        assert_eq!((store.len(), store.owners()), (0, 0));
    }

    #[test]
    fn those_without_an_owner_are_found_by_their_namespace_if_the_kind_asks_for_it() {
        let store = Store::default();
        let put = |name: &str, owned: bool| {
            let thing = Thing::new("ns", name, if owned { "2" } else { "1" });
            store.put(&Arc::new(if owned { thing.owned_by("o") } else { thing }));
        };
        let names = |things: Vec<Arc<Thing>>| things.iter().map(|t| t.key.name.to_string()).collect::<Vec<_>>();
        put("b", false);
        put("a", false);
        store.put(&Arc::new(Thing::new("other", "c", "1")));
        assert_eq!(names(store.unowned("ns")), ["a", "b"]);
        put("a", true);
        assert_eq!(names(store.unowned("ns")), ["b"]);
        assert_eq!(
            (names(store.in_namespace(&"ns".into())), names(store.unowned("none"))),
            (vec!["a".into(), "b".into()], vec![])
        );
        store.clear();
        assert_eq!((store.unowned("ns").len(), store.read().unowned.len()), (0, 0));
    }

    thread_local! {
        static LOOKS: std::cell::Cell<usize> = const { std::cell::Cell::new(0) };
    }

    /// A thing that counts how often something of it is looked at.
    struct Watched(Thing);

    impl Watched {
        fn look(&self) -> &Thing {
            LOOKS.set(LOOKS.get() + 1);
            &self.0
        }
    }

    impl Cached for Watched {
        fn key(&self) -> &ObjectKey {
            self.look().key()
        }
        fn uid(&self) -> &Uid {
            self.look().uid()
        }
        fn resource_version(&self) -> &str {
            self.look().resource_version()
        }
        fn owner(&self) -> Option<&Uid> {
            self.look().owner()
        }
    }

    #[test]
    fn whoever_reads_its_children_looks_at_no_strangers() {
        let store = Store::default();
        for number in 0..10_000 {
            let owner = if number % 5_000 == 0 { "ours" } else { "theirs" };
            store.put(&Arc::new(Watched(Thing::new("ns", &format!("t{number}"), "1").owned_by(owner))));
        }
        LOOKS.set(0);
        assert_eq!(store.children(&"ours".to_owned().into()).len(), 2);
        assert!(LOOKS.get() <= 2, "{} looks", LOOKS.get());
        // Nor does one more child of its own.
        store.put(&Arc::new(Watched(Thing::new("ns", "u", "1").owned_by("ours"))));
        assert!(LOOKS.get() <= 40, "{} looks", LOOKS.get());
    }

    #[test]
    fn a_child_that_is_updated_stays_one_child() {
        let store = Store::default();
        put(&store, Thing::new("ns", "a", "1").owned_by("o"));
        put(&store, Thing::new("ns", "a", "2").owned_by("o"));
        let children = store.children(&"o".to_owned().into());
        assert_eq!(children.iter().map(|t| &*t.version).collect::<Vec<_>>(), ["2"]);
    }

    #[test]
    fn putting_tells_new_same_updated_and_recreated_apart() {
        let store = Store::default();
        let first = Thing::new("ns", "a", "1");
        assert_eq!(put(&store, first.clone()), Put::New);
        assert_eq!(put(&store, first.clone()), Put::Same);
        let second = Thing::new("ns", "a", "2");
        assert_eq!(put(&store, second.clone()), Put::Update(Arc::new(first)));
        let other = Thing { uid: "other".to_owned().into(), ..Thing::new("ns", "a", "3") };
        assert_eq!(put(&store, other), Put::OtherUid(Arc::new(second)));
        assert_eq!(store.len(), 1);
    }

    #[test]
    fn a_list_takes_out_exactly_what_it_does_not_show() {
        let store = Store::default();
        for name in ["a", "b", "c", "d"] {
            put(&store, Thing::new("ns", name, "1"));
        }
        store.begin_list();
        put(&store, Thing::new("ns", "b", "1"));
        put(&store, Thing::new("ns", "c", "2"));
        let gone: Vec<_> = store.end_list().iter().map(|t| t.key.name.to_string()).collect();
        assert_eq!(gone, ["a", "d"]);
        assert_eq!(store.list().iter().map(|t| &*t.version).collect::<Vec<_>>(), ["1", "2"]);
    }

    #[tokio::test(start_paused = true)]
    async fn whoever_waits_for_the_first_list_is_woken_by_it() {
        let store = Store::<Thing>::default();
        assert!(!store.has_synced());
        let waiting = store.clone();
        let (_, ()) = tokio::join!(waiting.synced(), async { store.set_synced(true) });
        assert!(store.has_synced());
    }
}
