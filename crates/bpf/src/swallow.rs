//! Buffers that applications fix, left automatic.

use std::{collections::BTreeSet, os::fd::AsFd};

use aya::{
    Ebpf, EbpfLoader,
    maps::{Array, HashMap, MapData},
    programs::{CgroupAttachMode, CgroupSockopt},
};

use crate::{BpfError, LOADING, lacks, program, refused};

/// The object of `unpin.bpf.c`, placed as ELF wants it.
static OBJECT: &[u8] = aya::include_bytes_aligned!("unpin.bpf.o");
/// What a name of a process has room for, its end included (`TASK_COMM_LEN`).
const NAME: usize = 16;

/// Whose calls.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Whose {
    /// Every process in the control group.
    Everyone,
    /// Threads of this name, and processes that [`Swallow::follow`] is given.
    Named(String),
    /// Processes that [`Swallow::follow`] is given.
    Followed,
}

/// Calls that were swallowed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Swallowed {
    /// Of `SO_SNDBUF`.
    pub send: u64,
    /// Of `SO_RCVBUF`.
    pub receive: u64,
}

/// Swallows `SO_SNDBUF` and `SO_RCVBUF` of TCP sockets that are made in a control group, as long as this lives.
#[derive(Debug)]
pub struct Swallow {
    ebpf: Ebpf,
}

impl Swallow {
    /// Begins. `group` is the folder of a control group (version 2).
    ///
    /// # Errors
    ///
    /// Without rights, or where the kernel can't.
    pub fn begin(group: impl AsFd, whose: &Whose) -> Result<Self, BpfError> {
        let mut name = [0; NAME];
        if let Whose::Named(text) = whose {
            // As the kernel cuts it.
            name.iter_mut().take(NAME - 1).zip(text.bytes()).for_each(|(place, byte)| *place = byte);
        }
        let (low, high) = name.split_at(NAME / 2);
        let word = |half: &[u8]| half.try_into().map_or(0, u64::from_ne_bytes);
        let (everyone, low, high) = (u32::from(*whose == Whose::Everyone), word(low), word(high));
        let mut ebpf = EbpfLoader::new()
            .override_global("everyone", &everyone, true)
            .override_global("name_low", &low, true)
            .override_global("name_high", &high, true)
            .load(OBJECT)
            .map_err(|error| refused(LOADING, &error))?;
        for name in ["unpin_set", "unpin_get"] {
            let program: &mut CgroupSockopt = program(&mut ebpf, name)?;
            program.load().map_err(|error| refused(LOADING, &error))?;
            // A link has no flags here and always lets others of its kind go on (`cgroup_bpf_link_attach`).
            program
                .attach(group.as_fd(), CgroupAttachMode::Single)
                .map_err(|error| refused("attaching a BPF program to the control group", &error))?;
        }
        Ok(Self { ebpf })
    }

    /// Follows these processes, and no others any more.
    ///
    /// # Errors
    ///
    /// Where they are too many.
    pub fn follow(&mut self, processes: &BTreeSet<u32>) -> Result<(), BpfError> {
        let map = self.ebpf.map_mut("PROCESSES").ok_or_else(|| lacks("PROCESSES"))?;
        let mut map = HashMap::<&mut MapData, u32, u32>::try_from(map).map_err(|error| refused("following", &error))?;
        let known: BTreeSet<u32> = map.keys().flatten().collect();
        for gone in known.difference(processes) {
            // It may be gone already.
            drop(map.remove(gone));
        }
        for new in processes.difference(&known) {
            map.insert(new, 1, 0).map_err(|error| refused("following a process", &error))?;
        }
        Ok(())
    }

    /// What was swallowed so far.
    ///
    /// # Errors
    ///
    /// Where the kernel doesn't tell.
    pub fn swallowed(&self) -> Result<Swallowed, BpfError> {
        let map = self.ebpf.map("SWALLOWED").ok_or_else(|| lacks("SWALLOWED"))?;
        let map = Array::<&MapData, u64>::try_from(map).map_err(|error| refused("counting", &error))?;
        let count = |at| map.get(&at, 0).map_err(|error| refused("counting", &error));
        Ok(Swallowed { send: count(0)?, receive: count(1)? })
    }
}
