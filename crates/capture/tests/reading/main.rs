//! Captures made by hand, byte by byte, through the reader: each container, link layer, tunnel and kind of damage.

mod containers;
mod damage;
mod links;
mod made;
mod networks;
