//! Messages of calls: protobuf, up to a size.

use tonic_prost::ProstCodec;

/// Returns the gRPC server side of calls with questions `Q` and answers `A`, of which no message is
/// longer than this.
pub fn grpc<A, Q>(message_bytes_max: usize) -> tonic::server::Grpc<ProstCodec<A, Q>>
where
    A: prost::Message + 'static,
    Q: prost::Message + Default + 'static,
{
    tonic::server::Grpc::new(ProstCodec::default())
        .max_decoding_message_size(message_bytes_max)
        .max_encoding_message_size(message_bytes_max)
}
