//! The commands by name, each with its own flags and those of the server.

use clap::Args;
use fulgurite_client::remote::RemoteArgs;
use fulgurite_terminal::CommandFuture;
use fulgurite_terminal::output::Output;

use crate::{cat, copy, get, ls, put, restore, rm, status, sync};

/// The commands on objects.
#[derive(Debug, clap::Subcommand)]
pub enum ObjectCommand {
    /// Store files, folders or standard input as objects
    Put(WithRemote<put::PutArgs>),
    /// Fetch an object, or a folder of them
    Get(WithRemote<get::GetArgs>),
    /// Print objects
    Cat(WithRemote<cat::CatArgs>),
    /// Copy objects on the server
    Cp(WithRemote<copy::CopyArgs>),
    /// Move objects on the server
    Mv(WithRemote<copy::CopyArgs>),
    /// Mirror a folder to a bucket prefix, or a prefix to a folder
    Sync(WithRemote<sync::SyncArgs>),
    /// List buckets or objects
    Ls(WithRemote<ls::LsArgs>),
    /// Delete objects
    Rm(WithRemote<rm::RmArgs>),
    /// Make a bucket
    Mb(WithRemote<rm::BucketArgs>),
    /// Delete an empty bucket
    Rb(WithRemote<rm::BucketArgs>),
    /// Request readable copies of archived objects
    Restore(WithRemote<restore::RestoreArgs>),
    /// Show class and restore state of objects
    Status(WithRemote<status::StatusArgs>),
}

impl ObjectCommand {
    /// Whether the command does its work even if no one reads its output.
    pub const fn ignores_broken_pipe(&self) -> bool {
        !matches!(self, Self::Cat(_) | Self::Ls(_) | Self::Status(_))
    }
}

/// A command's own flags and those of the server.
#[derive(Debug, Args)]
pub struct WithRemote<A: Args> {
    #[command(flatten)]
    own: A,
    #[command(flatten)]
    remote: RemoteArgs,
}

/// Runs a command on objects.
pub fn object<'a>(command: &'a ObjectCommand, out: &'a Output) -> CommandFuture<'a> {
    match command {
        ObjectCommand::Put(args) => Box::pin(put::put(&args.own, &args.remote, out)),
        ObjectCommand::Get(args) => Box::pin(get::get(&args.own, &args.remote, out)),
        ObjectCommand::Cat(args) => Box::pin(cat::cat(&args.own, &args.remote, out)),
        ObjectCommand::Cp(args) => Box::pin(copy::copy(&args.own, &args.remote, out)),
        ObjectCommand::Mv(args) => Box::pin(copy::move_objects(&args.own, &args.remote, out)),
        ObjectCommand::Sync(args) => Box::pin(sync::sync(&args.own, &args.remote, out)),
        ObjectCommand::Ls(args) => Box::pin(ls::ls(&args.own, &args.remote, out)),
        ObjectCommand::Rm(args) => Box::pin(rm::rm(&args.own, &args.remote, out)),
        ObjectCommand::Mb(args) => Box::pin(rm::make_bucket(&args.own, &args.remote, out)),
        ObjectCommand::Rb(args) => Box::pin(rm::remove_bucket(&args.own, &args.remote, out)),
        ObjectCommand::Restore(args) => Box::pin(restore::restore(&args.own, &args.remote, out)),
        ObjectCommand::Status(args) => Box::pin(status::status(&args.own, &args.remote, out)),
    }
}
