//! Races: of several writers that expect the same image, one succeeds.

use bytes::Bytes;
use futures::future::join_all;

use super::{CheckResult, Subject, describe, passed, read, write};
use crate::stores::{Certainty, Expect, Key, Table, TableError};

/// Writers per race.
const WRITERS: usize = 20;
/// Rounds of a race.
const ROUNDS: usize = 8;
/// Writers that count, and increments of each.
const COUNTERS: usize = 8;
const INCREMENTS: usize = 10;
/// Maximum tries per increment: in the worst case all others win each time but the last.
const TRIES: usize = 2000;

/// Results of the rounds of a race.
#[derive(Default)]
struct Rounds {
    one: usize,
    none: usize,
    several: usize,
    winners: usize,
    wrong: Vec<String>,
}

impl Rounds {
    fn conclude(self) -> CheckResult {
        let Self { one, none, several, winners, wrong } = self;
        if several > 0 {
            return Err(format!(
                "{several} of {ROUNDS} rounds of {WRITERS} writers had more than one winner, \
                 {winners} in all"
            ));
        }
        if let Some(first) = wrong.first() {
            return Err(format!("{} of {ROUNDS} rounds: {first}", wrong.len()));
        }
        if one == 0 {
            return Err(format!("no round of {ROUNDS} had a winner"));
        }
        passed(format!("{one} rounds of {WRITERS} writers had one winner, {none} had none"))
    }
}

/// Races to create rows.
pub(super) async fn create(subject: &Subject<'_>) -> CheckResult {
    let mut rounds = Rounds::default();
    for round in 0..ROUNDS {
        let key = subject.key("create-race", round);
        race(subject, &key, &Expect::Absent, &mut rounds).await?;
    }
    rounds.conclude()
}

/// Races to replace one image of a row.
pub(super) async fn update(subject: &Subject<'_>) -> CheckResult {
    let key = subject.key("update-race", 0);
    write(subject.table, &key, Expect::Absent, &subject.image()).await?;
    let mut rounds = Rounds::default();
    for _ in 0..ROUNDS {
        let Some(row) = read(subject.table, &key).await? else {
            return Err("a written row is missing".to_owned());
        };
        race(subject, &key, &Expect::Is(row.tag), &mut rounds).await?;
    }
    rounds.conclude()
}

/// Runs one round, half of it over each connection.
async fn race(
    subject: &Subject<'_>,
    key: &Key,
    expect: &Expect,
    rounds: &mut Rounds,
) -> Result<(), String> {
    let images: Vec<Bytes> = (0..WRITERS).map(|_| subject.image()).collect();
    let before = read(subject.table, key).await?.map(|row| row.bytes);
    let tables = [subject.table, subject.second];
    let writers = images
        .iter()
        .enumerate()
        .map(|(writer, image)| tables[writer % 2].cas(key, expect.clone(), image.clone()));
    let answers = join_all(writers).await;
    let (mut won, mut unknown) = (Vec::new(), Vec::new());
    for (image, answer) in images.iter().zip(answers) {
        match answer {
            Ok(_) => won.push(image),
            Err(error) if error.certainty() == Certainty::Unknown => unknown.push(image),
            Err(
                TableError::Conflict(_) | TableError::Unavailable(_) | TableError::Throttled(_),
            ) => {}
            Err(error) => return Err(describe("a write of a race", &error)),
        }
    }
    rounds.winners += won.len();
    let current = read(subject.table, key).await?.map(|row| row.bytes);
    match &*won {
        [] => {
            rounds.none += 1;
            let is_valid = current == before || current.iter().any(|row| unknown.contains(&row));
            if !is_valid {
                rounds.wrong.push("no writer won, but the row changed".to_owned());
            }
        }
        [winner] => {
            rounds.one += 1;
            if current.as_ref() != Some(*winner) {
                rounds.wrong.push("the row is not what the winner wrote".to_owned());
            }
        }
        _ => rounds.several += 1,
    }
    Ok(())
}

/// Checks a row that several writers increment concurrently.
pub(super) async fn counter(subject: &Subject<'_>) -> CheckResult {
    let key = subject.key("counter", 0);
    write(subject.table, &key, Expect::Absent, &counted(subject, 0)).await?;
    let tables = [subject.table, subject.second];
    let counters = (0..COUNTERS).map(|counter| count(subject, tables[counter % 2], &key));
    let mut acknowledged = 0;
    for done in join_all(counters).await {
        acknowledged += done?;
    }
    let current = read(subject.table, &key).await?.map_or(0, |row| value(&row.bytes));
    if current != acknowledged || acknowledged != COUNTERS * INCREMENTS {
        let whole = COUNTERS * INCREMENTS;
        return Err(format!(
            "{acknowledged} of {whole} increments acknowledged, {current} counted"
        ));
    }
    passed(format!("{current} increments by {COUNTERS} writers acknowledged and counted"))
}

/// Runs the increments of one writer. Returns how many were acknowledged.
async fn count(subject: &Subject<'_>, table: &dyn Table, key: &Key) -> Result<usize, String> {
    for done in 0..INCREMENTS {
        let mut tries = 0;
        loop {
            tries += 1;
            if tries > TRIES {
                return Ok(done);
            }
            // The change starts from what a read returns, not from what a conflict reports.
            let Some(row) = read(table, key).await? else {
                return Err("a written row is missing".to_owned());
            };
            // So that others have read the same image, even if the table answers at once.
            tokio::task::yield_now().await;
            let next = counted(subject, value(&row.bytes) + 1);
            match table.cas(key, Expect::Is(row.tag), next.clone()).await {
                Ok(_) => break,
                Err(error) if error.certainty() == Certainty::Unknown => {
                    if read(table, key).await?.is_some_and(|row| row.bytes == next) {
                        break;
                    }
                    return Err(describe("an increment", &error));
                }
                Err(
                    TableError::Conflict(_) | TableError::Unavailable(_) | TableError::Throttled(_),
                ) => tokio::task::yield_now().await,
                Err(error) => return Err(describe("an increment", &error)),
            }
        }
    }
    Ok(INCREMENTS)
}

/// Encodes a count with a nonce.
fn counted(subject: &Subject<'_>, count: usize) -> Bytes {
    format!("{count} {}", hex::encode(subject.entropy.draw())).into()
}

fn value(row: &[u8]) -> usize {
    let text = std::str::from_utf8(row).unwrap_or_default();
    text.split(' ').next().and_then(|count| count.parse().ok()).unwrap_or(0)
}
