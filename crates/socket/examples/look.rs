//! What this system tells of a connection, and how the library sizes one: `cargo run -p fullpipe-socket --example look
//! [-- HOST:PORT [RATE]]`. Without an address: of a connection over loopback that has moved a megabyte.

use std::{
    error::Error,
    io::{Read, Write},
    net::{TcpListener, ToSocketAddrs},
    thread,
    time::Duration,
};

use fullpipe_socket::{Fixed, Info, Memory, Wish, connect};

const MEGABYTE: usize = 1 << 20;

fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1);
    let far = arguments.next();
    let wish = arguments.next().map(|rate| rate.parse().map(Wish::bulk)).transpose()?.unwrap_or_default();
    let (address, server) = match &far {
        Some(name) => (name.to_socket_addrs()?.next().ok_or("no address of that name")?, None),
        None => {
            let listener = TcpListener::bind("127.0.0.1:0")?;
            (listener.local_addr()?, Some(thread::spawn(move || serve(&listener))))
        }
    };
    let (mut stream, mut tuned) = connect(address, Duration::from_secs(5), wish)?;
    if server.is_some() {
        stream.write_all(&vec![0; MEGABYTE])?;
        stream.read_exact(&mut [0])?;
    }
    println!("{}", tuned.look_again(&stream)?);
    println!("fixed by a call: {:?}", Fixed::read(&stream));
    println!("{:#?}", Memory::read(&stream)?);
    match Info::read(&stream) {
        Ok(info) => println!("{info:#?}"),
        Err(error) => println!("this system tells nothing of a connection: {error}"),
    }
    drop(stream);
    if let Some(server) = server {
        server.join().map_err(|_| "the server's thread ended")?.map_err(|error| error.to_string())?;
    }
    Ok(())
}

/// Takes the connection that only looks, then reads a megabyte of the one that stays, and answers.
fn serve(listener: &TcpListener) -> Result<(), Box<dyn Error + Send + Sync>> {
    listener.accept()?;
    let (mut stream, _) = listener.accept()?;
    stream.read_exact(&mut vec![0; MEGABYTE])?;
    stream.write_all(b"!")?;
    // Until the other end has looked.
    stream.read_to_end(&mut Vec::new())?;
    Ok(())
}
