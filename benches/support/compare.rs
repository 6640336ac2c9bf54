//! `verify run` beside a bare HTTP loop: the same bodies to the same `verify mock`, which is a process of its own and so
//! on nobody's account. The bare loop is the least that the HTTP client in use can do: one thread, so many workers,
//! each sends a body that is ready and reads the reply. Only the loop is measured there; of `verify run` the whole
//! process is.

use std::cell::RefCell;
use std::path::Path;
use std::process::{Command, ExitCode, Stdio};
use std::rc::Rc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use http_body_util::{BodyExt as _, Full};
use hyper::{Request, Uri, header};
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::{TokioExecutor, TokioTimer};

use super::arguments::{self, Size};
use super::process::{self, Cost, KEY};
use super::provider::{Mock, around_the_text};
use super::{Broken, input, verdict};

/// What `verify run` is told besides.
const PROVIDER: [&str; 4] = ["--provider", "openai", "--model", "mock"];
/// The time that a request of the bare loop has.
const TIMEOUT: Duration = Duration::from_secs(600);
/// Says to this program that it is the bare loop.
const BARE: &str = "bare-loop";

/// Does what the command line of a bench says: `bench`, or the bare loop of one.
pub(crate) fn main(bench: fn(Size) -> Result<ExitCode, Broken>) -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let result = match words.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        [BARE, base_url, rows, workers, before, after] => {
            bare_loop(base_url, rows, workers, before, after).map(|()| ExitCode::SUCCESS)
        }
        _ => match arguments::size() {
            Some(size) => bench(size),
            None => Ok(ExitCode::SUCCESS),
        },
    };
    result.unwrap_or_else(|error| verdict::broken(&error))
}

/// One comparison.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Shape {
    pub(crate) rows: u64,
    pub(crate) workers: u32,
    pub(crate) latency: &'static str,
    /// How often it is made.
    pub(crate) rounds: u32,
    /// A pool of all workers from the first request on: nothing that goes up slowly, and a key that has answered before,
    /// so that no first request goes alone.
    pub(crate) fixed: bool,
}

/// The figures of each round.
#[derive(Debug, Default)]
pub(crate) struct Figures {
    /// CPU time of `verify run` over that of the bare loop.
    pub(crate) cpu: Vec<f64>,
    /// Wall time alike.
    pub(crate) wall: Vec<f64>,
    /// CPU time of `verify run` a row, in microseconds.
    pub(crate) row: Vec<f64>,
}

/// Compares `verify run` with the bare loop, and prints each round.
#[expect(clippy::print_stdout, reason = "a bench speaks to whoever runs it")]
pub(crate) fn compare(folder: &Path, name: &str, shape: Shape) -> Result<Figures, Broken> {
    let Shape { rows, workers, latency, rounds, fixed } = shape;
    let folder = &folder.join(name);
    std::fs::create_dir(folder)?;
    let around = around_the_text(folder, &PROVIDER)?;
    let path = folder.join("rows.jsonl");
    input::write(&path, rows)?;
    println!("\n{rows} rows, {workers} workers, latency {latency}");
    println!(
        "{:<9} {:>9} {:>9} {:>10} {:>9} {:>9} {:>11}",
        "", "bare µs", "row µs", "CPU ratio", "bare s", "rows s", "wall ratio"
    );
    let mock = Mock::start(latency)?;
    let mut figures = Figures::default();
    for round in 1..=rounds {
        let bare = run_bare(&mock, shape, &around)?;
        let own = folder.join(round.to_string());
        std::fs::create_dir(&own)?;
        let (base_url, concurrency) = (mock.base_url(), workers.to_string());
        let mut more = [&PROVIDER[..], &["--base-url", &base_url, "--concurrency", &concurrency]].concat();
        if fixed {
            more.push("--adaptive=false");
            let first = own.join("first.jsonl");
            input::write_one(&first, "whether the key is good")?;
            process::measure(process::verify_run(&first, &own, &more))?;
        }
        let whole = process::measure(process::verify_run(&path, &own, &more))?;
        let ratio = |of: fn(&Cost) -> Duration| of(&whole).as_secs_f64() / of(&bare).as_secs_f64();
        let (cpu, wall) = (ratio(|cost| cost.cpu), ratio(|cost| cost.wall));
        let each = |cost: &Cost| cost.cpu.as_nanos() / 1_000 / u128::from(rows);
        let seconds = |cost: &Cost| cost.wall.as_secs_f64();
        println!(
            "round {round:<3} {:>9} {:>9} {cpu:>10.2} {:>9.2} {:>9.2} {wall:>11.3}",
            each(&bare),
            each(&whole),
            seconds(&bare),
            seconds(&whole)
        );
        figures.cpu.push(cpu);
        figures.wall.push(wall);
        figures.row.push(whole.cpu.as_secs_f64() * 1e6 / f64::from(u32::try_from(rows)?));
    }
    // The same bodies from both sides, or the comparison is none.
    let (distinct, requests) = mock.requests()?;
    let first = u64::from(fixed);
    if (distinct, requests) != (rows + first, (rows * 2 + first) * u64::from(rounds)) {
        let message =
            format!("{requests} requests with {distinct} bodies do not fit {rows} rows of the same bodies");
        return Err(message.into());
    }
    Ok(figures)
}

/// The middle one of some figures.
pub(crate) fn median(mut figures: Vec<f64>) -> f64 {
    figures.sort_by(f64::total_cmp);
    figures.get(figures.len() / 2).copied().unwrap_or(f64::NAN)
}

/// Runs the bare loop in a process of its own, which measures the loop and prints what it cost, in microseconds.
fn run_bare(mock: &Mock, shape: Shape, around: &(String, String)) -> Result<Cost, Broken> {
    let output = Command::new(std::env::current_exe()?)
        .args([
            BARE,
            &mock.base_url(),
            &shape.rows.to_string(),
            &shape.workers.to_string(),
            &around.0,
            &around.1,
        ])
        .stdin(Stdio::null())
        .stderr(Stdio::inherit())
        .output()?;
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let mut numbers = text.split_whitespace().map(str::parse::<u64>);
    let (Some(Ok(cpu)), Some(Ok(wall)), true) = (numbers.next(), numbers.next(), output.status.success())
    else {
        return Err(format!("the bare loop ended with {}", output.status).into());
    };
    Ok(Cost { cpu: Duration::from_micros(cpu), wall: Duration::from_micros(wall), peak: 0 })
}

#[expect(clippy::print_stdout, reason = "the figures go to the process that asked for them")]
fn bare_loop(base_url: &str, rows: &str, workers: &str, before: &str, after: &str) -> Result<(), Broken> {
    let (rows, workers): (u64, usize) = (rows.parse()?, workers.parse()?);
    let url: Uri = format!("{base_url}/chat/completions").parse()?;
    let bodies: Vec<String> = (1..=rows).map(|row| format!("{before}{}{after}", input::text(row))).collect();
    let mut connector = HttpConnector::new();
    connector.set_nodelay(true);
    let client = Client::builder(TokioExecutor::new())
        .pool_timer(TokioTimer::new())
        .pool_max_idle_per_host(workers)
        .build(connector);
    let bodies = Rc::new(RefCell::new(bodies.into_iter()));
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let (cpu, begun) = (process::own_cpu()?, Instant::now());
    let tasks = tokio::task::LocalSet::new();
    let handles: Vec<_> = (0..workers)
        .map(|_| tasks.spawn_local(work(client.clone(), url.clone(), Rc::clone(&bodies))))
        .collect();
    runtime.block_on(tasks);
    let (cpu, wall) = (process::own_cpu()?.saturating_sub(cpu), begun.elapsed());
    for handle in handles {
        runtime.block_on(handle)??;
    }
    println!("{} {}", cpu.as_micros(), wall.as_micros());
    Ok(())
}

async fn work(
    client: Client<HttpConnector, Full<Bytes>>,
    url: Uri,
    bodies: Rc<RefCell<std::vec::IntoIter<String>>>,
) -> Result<(), Broken> {
    let key = format!("Bearer {KEY}");
    loop {
        let Some(body) = bodies.borrow_mut().next() else { return Ok(()) };
        let request = Request::post(url.clone())
            .header(header::CONTENT_TYPE, "application/json")
            .header(header::AUTHORIZATION, &key)
            .body(Full::new(Bytes::from(body)))?;
        let asked = async {
            let reply = client.request(request).await?;
            let status = reply.status();
            reply.into_body().collect().await?;
            if status.is_success() { Ok::<_, Broken>(()) } else { Err(format!("status {status}").into()) }
        };
        tokio::time::timeout(TIMEOUT, asked).await??;
    }
}
