//! Messages and calls, defined in the notation of protobuf.
//!
//! A definition is the only copy of a wire format: the compiler reads it as Rust, and protoc reads
//! it as proto3 once `syntax = "proto3";` is put before it and each `=> function` is taken away.

/// A call: where it goes, and what it carries in each direction.
pub trait Call {
    /// Its path, with package, service and name.
    const PATH: &'static str;
    /// The message of a request; a stream of them in a streaming call.
    type Request: prost::Message + Default + 'static;
    /// The message of a reply.
    type Reply: prost::Message + Default + 'static;
}

/// What a label makes of a field's type.
#[doc(hidden)]
pub mod labels {
    pub use std::{option::Option, vec::Vec};
    /// Without a label.
    pub type One<T> = T;
}

/// Defines the messages and the calls of a service.
///
/// ```text
/// package fulgurite.example.v1;
///
/// service Example {
///   rpc Add(stream Number) returns (Number) => add;
/// }
///
/// message Number {
///   uint64 value = 1;
/// }
/// ```
///
/// This defines the struct `Number`, the type `calls::Add` for the client's side (`Client`), and
/// for the server's side a trait `Example` with a function `add`, whose calls `answer` dispatches.
/// Fields may be `optional` or `repeated`, and have the types `bool`, `uint32`, `uint64`, `string`,
/// `bytes`, or that of a message.
#[macro_export]
macro_rules! protobuf {
    (
        package $package:expr;
        service $service:ident {
            $(rpc $call:ident($($request:ident)+) returns ($($reply:ident)+) => $method:ident;)*
        }
        $(message $message:ident { $($fields:tt)* })*
    ) => {
        /// The calls of the service, for its clients.
        pub(crate) mod calls {
            $(
                pub(crate) enum $call {}
                impl $crate::Call for $call {
                    const PATH: &'static str = concat!(
                        "/", stringify!($package), ".", stringify!($service), "/", stringify!($call)
                    );
                    type Request = $crate::protobuf!(@message $($request)+);
                    type Reply = $crate::protobuf!(@message $($reply)+);
                }
            )*
        }

        /// Answers the calls of the service.
        pub(crate) trait $service: Send + Sync + 'static {
            /// Admits a call with this name; the permit is held until the last reply.
            fn admit(
                self: &std::sync::Arc<Self>,
                _call: &'static str,
            ) -> impl Future<Output = Option<$crate::tokio::sync::OwnedSemaphorePermit>> + Send {
                std::future::ready(None)
            }

            $(
                fn $method(
                    self: &std::sync::Arc<Self>,
                    request: $crate::tonic::Request<$crate::protobuf!(@request $($request)+)>,
                ) -> impl Future<
                    Output = Result<$crate::protobuf!(@reply $($reply)+), $crate::tonic::Status>
                > + Send;
            )*
        }

        /// Dispatches a call. No message is longer than `message_bytes_max`.
        pub(crate) async fn answer<S: $service>(
            service: std::sync::Arc<S>,
            message_bytes_max: usize,
            request: $crate::http::Request<$crate::tonic::body::Body>,
        ) -> $crate::http::Response<$crate::tonic::body::Body> {
            match request.uri().path() {
                $(<calls::$call as $crate::Call>::PATH => {
                    let permit = std::sync::Arc::new(service.admit(stringify!($call)).await);
                    let call = $crate::tower::service_fn(move |request| {
                        let service = std::sync::Arc::clone(&service);
                        let permit = std::sync::Arc::clone(&permit);
                        async move {
                            let reply = $service::$method(&service, request).await?;
                            let reply = $crate::protobuf!(@permit permit reply ($($reply)+));
                            Ok($crate::tonic::Response::new(reply))
                        }
                    });
                    let mut grpc = $crate::server_side::<calls::$call>(message_bytes_max);
                    $crate::protobuf!(@answer grpc call request ($($request)+) ($($reply)+))
                })*
                _ => $crate::tonic::Status::unimplemented("unknown call").into_http(),
            }
        }

        $($crate::protobuf!(@fields $message [] $($fields)*);)*
    };

    (@message stream $message:ident) => { super::$message };
    (@message $message:ident) => { super::$message };
    (@request stream $message:ident) => { $crate::tonic::Streaming<$message> };
    (@request $message:ident) => { $message };
    (@reply stream $message:ident) => { $crate::Replies<$message> };
    (@reply $message:ident) => { $message };

    (@answer $grpc:ident $call:ident $request:ident (stream $_q:ident) (stream $_a:ident)) => {
        $grpc.streaming($call, $request).await
    };
    (@answer $grpc:ident $call:ident $request:ident (stream $_q:ident) ($_a:ident)) => {
        $grpc.client_streaming($call, $request).await
    };
    (@answer $grpc:ident $call:ident $request:ident ($_q:ident) (stream $_a:ident)) => {
        $grpc.server_streaming($call, $request).await
    };
    (@answer $grpc:ident $call:ident $request:ident ($_q:ident) ($_a:ident)) => {
        $grpc.unary($call, $request).await
    };

    (@permit $permit:ident $reply:ident (stream $_a:ident)) => {
        $crate::with_permit($reply, $permit)
    };
    (@permit $permit:ident $reply:ident ($_a:ident)) => {{
        drop($permit);
        $reply
    }};

    // The fields of a message, one after the other: first the label, then the type.
    (@fields $message:ident [$($done:tt)*]) => {
        #[derive(Clone, PartialEq, $crate::prost::Message)]
        #[prost(prost_path = "::fulgurite_rpc::prost")]
        pub(crate) struct $message { $($done)* }
    };
    (@fields $message:ident $done:tt optional $($rest:tt)*) => {
        $crate::protobuf!(@type $message $done ([optional,] Option) $($rest)*);
    };
    (@fields $message:ident $done:tt repeated $($rest:tt)*) => {
        $crate::protobuf!(@type $message $done ([repeated,] Vec) $($rest)*);
    };
    (@fields $message:ident $done:tt $($rest:tt)*) => {
        $crate::protobuf!(@type $message $done ([] One) $($rest)*);
    };
    (@type $message:ident $done:tt $label:tt bool $($rest:tt)*) => {
        $crate::protobuf!(@field $message $done $label [bool] bool; $($rest)*);
    };
    (@type $message:ident $done:tt $label:tt uint32 $($rest:tt)*) => {
        $crate::protobuf!(@field $message $done $label [uint32] u32; $($rest)*);
    };
    (@type $message:ident $done:tt $label:tt uint64 $($rest:tt)*) => {
        $crate::protobuf!(@field $message $done $label [uint64] u64; $($rest)*);
    };
    (@type $message:ident $done:tt $label:tt string $($rest:tt)*) => {
        $crate::protobuf!(@field $message $done $label [string] String; $($rest)*);
    };
    (@type $message:ident $done:tt $label:tt bytes $($rest:tt)*) => {
        $crate::protobuf!(
            @field $message $done $label [bytes = "bytes"] $crate::prost::bytes::Bytes; $($rest)*
        );
    };
    // A message without a label may be absent.
    (@type $message:ident $done:tt ([] One) $type:ident $($rest:tt)*) => {
        $crate::protobuf!(@field $message $done ([optional,] Option) [message] $type; $($rest)*);
    };
    (@type $message:ident $done:tt $label:tt $type:ident $($rest:tt)*) => {
        $crate::protobuf!(@field $message $done $label [message] $type; $($rest)*);
    };
    (
        @field $message:ident [$($done:tt)*] ([$($label:tt)*] $wrapper:ident) [$($kind:tt)*]
        $type:ty; $field:ident = $tag:tt; $($rest:tt)*
    ) => {
        $crate::protobuf!(
            @fields $message
            [
                $($done)*
                #[prost($($kind)*, $($label)* tag = $tag)]
                pub(crate) $field: $crate::labels::$wrapper<$type>,
            ]
            $($rest)*
        );
    };
}
