//! Servers that tests start for themselves. If a program is missing, its test prints that and
//! skips, or fails if none may be missing. Tests of several sites use this file too.

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use tempfile::TempDir;

/// Folder of tools that are built once.
const TOOLS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../target/sites-tools");

/// Place of a server.
#[derive(Clone, Debug)]
pub(crate) struct Place {
    /// Its network namespace, if it has its own.
    pub(crate) namespace: Option<String>,
    /// Its address, as seen from the test.
    pub(crate) address: String,
}

impl Place {
    /// Returns the place of the test itself.
    pub(crate) fn here() -> Self {
        Self { namespace: None, address: "127.0.0.1".to_owned() }
    }

    /// Returns a command to run a program there.
    fn command(&self, program: &Path) -> Command {
        let Some(namespace) = &self.namespace else { return Command::new(program) };
        let mut command = Command::new("ip");
        command.args(["netns", "exec", namespace]).arg(program);
        command
    }

    fn answers(&self, port: u16) -> bool {
        let address = format!("{}:{port}", self.address).parse().unwrap();
        std::net::TcpStream::connect_timeout(&address, Duration::from_secs(1)).is_ok()
    }
}

/// A server of one test. It ends with the test.
pub(crate) struct Server {
    child: Child,
    pub(crate) port: u16,
    pub(crate) folder: TempDir,
    pub(crate) place: Place,
    start: Start,
}

type Start = Box<dyn Fn(&Path, u16) -> Child + Send + Sync>;

impl Server {
    /// Kills it without a chance to react, as in a power cut.
    pub(crate) fn crash(&mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }

    /// The same for a server of several processes, which must be notified.
    pub(crate) fn quit(&mut self) {
        let process = rustix::process::Pid::from_child(&self.child);
        rustix::process::kill_process(process, rustix::process::Signal::QUIT).unwrap();
        self.child.wait().unwrap();
    }

    pub(crate) fn restart(&mut self) {
        self.child = (self.start)(self.folder.path(), self.port);
    }

    /// Restarts it until it answers: leftovers of a killed one may block it at first.
    pub(crate) fn restart_until_it_answers(&mut self) {
        for _ in 0..2400 {
            if self.child.try_wait().unwrap().is_some() {
                self.restart();
            }
            std::thread::sleep(Duration::from_millis(25));
            if self.child.try_wait().unwrap().is_none() && self.place.answers(self.port) {
                return;
            }
        }
        panic!("the server does not restart");
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Finds a program in the path or in one of some folders.
fn program(name: &str, folders: &[PathBuf]) -> Option<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let all = std::env::split_paths(&path).chain(folders.iter().cloned());
    all.map(|folder| folder.join(name)).find(|program| program.is_file())
}

/// Prints that a test skips, unless it must not.
#[expect(clippy::print_stderr, reason = "a test prints that it skips")]
fn skip<T>(what: &str, may_be_missing: bool) -> Option<T> {
    let needed = std::env::var_os("FULGURITE_TEST_SERVERS").is_some();
    assert!(!needed || may_be_missing, "{what}");
    eprintln!("skipped: {what}");
    None
}

/// Returns a port that was free just now.
fn free_port() -> u16 {
    std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port()
}

/// Starts a server at a free port. If another process takes the port first, the server ends and is
/// started at another.
fn start_server(
    folder: TempDir,
    place: &Place,
    start: impl Fn(&Path, u16) -> Child + Clone + Send + Sync + 'static,
) -> Server {
    let mut server: Option<Server> = None;
    let mut folder = Some(folder);
    for _ in 0..5 {
        let port = free_port();
        let own = server.take().map(|mut failed| {
            failed.crash();
            std::mem::replace(&mut failed.folder, tempfile::tempdir().unwrap())
        });
        let own = own.or_else(|| folder.take()).unwrap();
        let child = start(own.path(), port);
        let start: Start = Box::new(start.clone());
        let place = place.clone();
        let starting = server.insert(Server { child, port, folder: own, place, start });
        for _ in 0..1200 {
            if starting.place.answers(port) {
                return server.unwrap();
            }
            if starting.child.try_wait().unwrap().is_some() {
                break;
            }
            std::thread::sleep(Duration::from_millis(25));
        }
    }
    panic!("the server does not start");
}

pub(crate) const POSTGRES_PASSWORD: &str = "a password";

/// Starts a `PostgreSQL` with a user `postgres`, its password, and a certificate for `localhost`
/// from a CA in `ca.pem`.
pub(crate) fn postgres(place: &Place) -> Option<Server> {
    let installed = std::fs::read_dir("/usr/lib/postgresql").into_iter().flatten().flatten();
    let installed: Vec<PathBuf> = installed.map(|entry| entry.path().join("bin")).collect();
    let (Some(initdb), Some(server)) =
        (program("initdb", &installed), program("postgres", &installed))
    else {
        return skip("PostgreSQL is not installed", false);
    };
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("password"), POSTGRES_PASSWORD).unwrap();
    certify(folder.path());
    let is_root = rustix::process::geteuid().is_root();
    if is_root {
        let mut chown = Command::new("chown");
        chown.args(["--recursive", "postgres:postgres"]).arg(folder.path());
        assert!(chown.status().unwrap().success());
    }
    // It refuses to run as root.
    let as_itself = |program: &Path| {
        let mut command = Command::new(if is_root { Path::new("setpriv") } else { program });
        if is_root {
            command.args(["--reuid=postgres", "--regid=postgres", "--init-groups"]).arg(program);
        }
        command.current_dir(folder.path()).stdin(Stdio::null());
        command.stdout(Stdio::null()).stderr(Stdio::null());
        command
    };
    let data = folder.path().join("data");
    let mut init = as_itself(&initdb);
    init.args(["--username=postgres", "--auth=scram-sha-256", "--pwfile=password", "--no-sync"]);
    init.args(["--encoding=UTF8", "--locale=C"]).arg("--pgdata").arg(&data);
    assert!(init.status().unwrap().success(), "initdb");
    if place.namespace.is_some() {
        let rules = data.join("pg_hba.conf");
        let mut rules = std::fs::OpenOptions::new().append(true).open(rules).unwrap();
        std::io::Write::write_all(&mut rules, b"host all all samenet scram-sha-256\n").unwrap();
    }
    let mut options = vec![format!("listen_addresses={}", place.address), "ssl=on".to_owned()];
    let own = folder.path().display();
    options.push(format!("ssl_cert_file={own}/own.pem"));
    options.push(format!("ssl_key_file={own}/own.key"));
    options.push(format!("unix_socket_directories={own}"));
    let own_place = place.clone();
    let start = move |folder: &Path, port: u16| {
        let mut command = own_place.command(if is_root { Path::new("setpriv") } else { &server });
        if is_root {
            command.args(["--reuid=postgres", "--regid=postgres", "--init-groups"]).arg(&server);
        }
        command.current_dir(folder).arg("-D").arg(folder.join("data"));
        command.args(["-p", &port.to_string()]);
        options.iter().for_each(|option| {
            command.args(["-c", option]);
        });
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        command.spawn().unwrap()
    };
    Some(start_server(folder, place, start))
}

/// Creates a CA, and a certificate from it for `localhost`.
fn certify(folder: &Path) {
    use std::os::unix::fs::OpenOptionsExt as _;
    let mut authority = rcgen::CertificateParams::default();
    authority.is_ca = rcgen::IsCa::Ca(rcgen::BasicConstraints::Unconstrained);
    let authority_key = rcgen::KeyPair::generate().unwrap();
    let certificate = authority.self_signed(&authority_key).unwrap();
    std::fs::write(folder.join("ca.pem"), certificate.pem()).unwrap();
    let issuer = rcgen::Issuer::new(authority, authority_key);
    let own = rcgen::CertificateParams::new(vec!["localhost".to_owned()]).unwrap();
    let key = rcgen::KeyPair::generate().unwrap();
    let own = own.signed_by(&key, &issuer).unwrap();
    std::fs::write(folder.join("own.pem"), own.pem()).unwrap();
    // It refuses a key that others may read.
    let mut file = std::fs::OpenOptions::new();
    let mut file =
        file.create_new(true).write(true).mode(0o600).open(folder.join("own.key")).unwrap();
    std::io::Write::write_all(&mut file, key.serialize_pem().as_bytes()).unwrap();
}

/// Starts an etcd of one member.
pub(crate) fn etcd(place: &Place) -> Option<Server> {
    let Some(program) = program("etcd", &[]) else {
        return skip("etcd is not installed", false);
    };
    let own_place = place.clone();
    let start = move |folder: &Path, port: u16| {
        let client = format!("http://{}:{port}", own_place.address);
        let peer = format!("http://127.0.0.1:{}", free_port());
        let mut command = own_place.command(&program);
        command.arg("--data-dir").arg(folder.join("data"));
        command.args(["--listen-client-urls", &client, "--advertise-client-urls", &client]);
        command.args(["--listen-peer-urls", &peer, "--initial-advertise-peer-urls", &peer]);
        command.args(["--initial-cluster", &format!("default={peer}")]);
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        command.spawn().unwrap()
    };
    Some(start_server(tempfile::tempdir().unwrap(), place, start))
}

pub(crate) const ACCESS_KEY: &str = "an-access-key";
pub(crate) const SECRET_KEY: &str = "a-secret-key";

/// Starts a versitygw with a bucket called `bucket`: an S3 server that enforces conditions.
pub(crate) fn versitygw(place: &Place) -> Option<Server> {
    let Some(gateway) = program("versitygw", &[TOOLS.into()]) else {
        let hint = "versitygw is not installed: GOBIN=$PWD/target/sites-tools go install \
                   github.com/versity/versitygw/cmd/versitygw@v1.8.0";
        // Building it takes a Go compiler, which not every machine has.
        return skip(hint, program("go", &[]).is_none());
    };
    let folder = tempfile::tempdir().unwrap();
    std::fs::create_dir_all(folder.path().join("data/bucket")).unwrap();
    let own_place = place.clone();
    let start = move |folder: &Path, port: u16| {
        let mut command = own_place.command(&gateway);
        let port = format!("{}:{port}", own_place.address);
        command.args(["--access", ACCESS_KEY, "--secret", SECRET_KEY]);
        command.args(["--port", &port, "posix"]).arg(folder.join("data"));
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        command.spawn().unwrap()
    };
    Some(start_server(folder, place, start))
}
