//! Real bus servers for tests: one nats-server, or three in a cluster, on free loopback ports.

#![expect(clippy::unwrap_used, reason = "test support fails by a panic")]

use std::io::Read as _;
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use crate::WAIT_LIMIT;

/// The servers of one bus. They end, and their files go, with this value.
pub struct BusServers {
    servers: Vec<Server>,
    directory: tempfile::TempDir,
}

struct Server {
    child: Option<Child>,
    port: u16,
    config: PathBuf,
}

/// The program that `tests/fleet/install` installs.
fn program() -> PathBuf {
    let named = std::env::var_os("QWEN_NATS_SERVER").map(PathBuf::from);
    named.unwrap_or_else(|| Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target/fleet/nats-server"))
}

fn free_ports(count: usize) -> Vec<u16> {
    let sockets: Vec<TcpListener> = (0..count).map(|_| TcpListener::bind("127.0.0.1:0").unwrap()).collect();
    sockets.iter().map(|socket| socket.local_addr().unwrap().port()).collect()
}

impl BusServers {
    /// Starts `count` servers with JetStream.
    #[track_caller]
    pub fn start(count: usize) -> Self {
        Self::start_with(count, "")
    }

    /// Starts `count` servers with further lines of configuration.
    #[track_caller]
    pub fn start_with(count: usize, further: &str) -> Self {
        let with_files = |config: String, store: &Path| {
            let store = store.display();
            format!("{config}jetstream {{ store_dir: \"{store}\", sync_interval: always }}\n{further}\n")
        };
        Self::start_as(count, with_files)
    }

    /// Starts a server that offers no JetStream.
    #[track_caller]
    pub fn without_jetstream() -> Self {
        Self::start_as(1, |config, _| config)
    }

    #[track_caller]
    fn start_as(count: usize, complete: impl Fn(String, &Path) -> String) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let (ports, routes) = (free_ports(count), free_ports(count));
        let urls: Vec<String> = routes.iter().map(|port| format!("nats://127.0.0.1:{port}")).collect();
        let mut bus = Self { servers: Vec::new(), directory };
        for (index, port) in ports.into_iter().enumerate() {
            let store = bus.directory.path().join(format!("s{index}"));
            let mut config = format!("server_name: s{index}\nhost: 127.0.0.1\nport: {port}\n");
            if count > 1 {
                let route = routes[index];
                config += &format!(
                    "cluster {{ name: test, host: 127.0.0.1, port: {route}, no_advertise: true, routes: [{}] }}\n",
                    urls.join(", ")
                );
            }
            let path = bus.directory.path().join(format!("s{index}.conf"));
            std::fs::write(&path, complete(config, &store)).unwrap();
            bus.servers.push(Server { child: None, port, config: path });
        }
        for index in 0..count {
            bus.restart(index);
        }
        bus
    }

    /// Starts a server that was killed.
    #[track_caller]
    pub fn restart(&mut self, index: usize) {
        let server = &mut self.servers[index];
        let program = program();
        let log =
            std::fs::File::options().create(true).append(true).open(server.config.with_extension("log"));
        let child = Command::new(&program)
            .arg("--config")
            .arg(&server.config)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(log.unwrap())
            .spawn();
        let child = child.unwrap_or_else(|error| {
            panic!("{}: {error}; install it with tests/fleet/install", program.display())
        });
        server.child = Some(child);
        let deadline = Instant::now() + WAIT_LIMIT;
        while !is_greeting(server.port) {
            assert!(Instant::now() < deadline, "the server did not start: {}", self.log(index));
            std::thread::yield_now();
        }
    }

    /// What a server has logged.
    pub fn log(&self, index: usize) -> String {
        std::fs::read_to_string(self.servers[index].config.with_extension("log")).unwrap_or_default()
    }

    /// Kills a server, as a power switch would end its process.
    #[track_caller]
    pub fn kill(&mut self, index: usize) {
        if let Some(mut child) = self.servers[index].child.take() {
            child.kill().unwrap();
            child.wait().unwrap();
        }
    }

    /// Ends a server with SIGTERM: it gives its leaderships up first.
    #[track_caller]
    pub fn terminate(&mut self, index: usize) {
        if let Some(mut child) = self.servers[index].child.take() {
            let pid = rustix::process::Pid::from_child(&child);
            rustix::process::kill_process(pid, rustix::process::Signal::TERM).unwrap();
            child.wait().unwrap();
        }
    }

    /// The port of every server.
    pub fn ports(&self) -> Vec<u16> {
        self.servers.iter().map(|server| server.port).collect()
    }

    /// The address of every server.
    pub fn url(&self) -> String {
        let urls: Vec<String> =
            self.servers.iter().map(|server| format!("nats://127.0.0.1:{}", server.port)).collect();
        urls.join(",")
    }

    /// The position of the server with a name.
    pub fn index_of(&self, name: &str) -> usize {
        name.trim_start_matches('s').parse().unwrap()
    }

    /// The files of all servers.
    pub fn directory(&self) -> &Path {
        self.directory.path()
    }
}

fn is_greeting(port: u16) -> bool {
    let Ok(mut socket) = TcpStream::connect(("127.0.0.1", port)) else { return false };
    let mut start = [0; 5];
    let limit = socket.set_read_timeout(Some(Duration::from_secs(5)));
    limit.is_ok() && socket.read_exact(&mut start).is_ok() && start == *b"INFO "
}

impl Drop for BusServers {
    fn drop(&mut self) {
        for server in &mut self.servers {
            if let Some(mut child) = server.child.take() {
                // It may have exited by itself.
                let _ = child.kill();
                let _ = child.wait();
            }
        }
    }
}
