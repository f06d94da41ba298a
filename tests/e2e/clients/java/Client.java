import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.net.URI;
import java.nio.charset.StandardCharsets;
import java.nio.file.Path;
import java.util.concurrent.CompletionException;
import software.amazon.awssdk.regions.Region;
import software.amazon.awssdk.services.s3.S3AsyncClient;
import software.amazon.awssdk.services.s3.model.S3Exception;
import software.amazon.awssdk.services.s3.model.Tier;
import software.amazon.awssdk.transfer.s3.S3TransferManager;

/** S3 as Java's TransferManager does it: commands on standard input, one answer a line. */
public final class Client {
    private final S3AsyncClient s3;
    private final S3TransferManager manager;
    private final String bucket;

    private Client(String endpoint, String bucket, long partSize) {
        this.bucket = bucket;
        s3 = S3AsyncClient.builder()
                .endpointOverride(URI.create(endpoint))
                .region(Region.US_EAST_1)
                .forcePathStyle(true)
                .multipartEnabled(true)
                .multipartConfiguration(
                        c -> c.minimumPartSizeInBytes(partSize).thresholdInBytes(partSize))
                .build();
        manager = S3TransferManager.builder().s3Client(s3).build();
    }

    private void carryOut(String[] words) {
        String key = words[1];
        switch (words[0]) {
            case "upload" -> manager.uploadFile(upload -> upload
                            .source(Path.of(words[2]))
                            .putObjectRequest(put -> put
                                    .bucket(bucket).key(key).storageClass(words[3])))
                    .completionFuture().join();
            case "download" -> manager.downloadFile(download -> download
                            .destination(Path.of(words[2]))
                            .getObjectRequest(get -> get.bucket(bucket).key(key)))
                    .completionFuture().join();
            case "restore" -> s3.restoreObject(restore -> restore
                            .bucket(bucket).key(key)
                            .restoreRequest(request -> request
                                    .days(1).glacierJobParameters(job -> job.tier(Tier.STANDARD))))
                    .join();
            case "delete" -> s3.deleteObject(delete -> delete.bucket(bucket).key(key)).join();
            default -> throw new IllegalArgumentException(words[0]);
        }
    }

    private String answer(String line) {
        try {
            carryOut(line.split("\t"));
            return "ok";
        } catch (CompletionException failed) {
            Throwable cause = failed.getCause();
            if (cause instanceof S3Exception refused && refused.awsErrorDetails() != null) {
                return refused.statusCode() + " " + refused.awsErrorDetails().errorCode();
            }
            return String.valueOf(cause).lines().findFirst().orElse("failed");
        }
    }

    /** Takes the endpoint, a bucket and the size of parts. */
    public static void main(String[] arguments) throws IOException {
        Client client = new Client(arguments[0], arguments[1], Long.parseLong(arguments[2]));
        BufferedReader lines = new BufferedReader(
                new InputStreamReader(System.in, StandardCharsets.UTF_8));
        for (String line = lines.readLine(); line != null; line = lines.readLine()) {
            System.out.println(client.answer(line));
        }
        client.manager.close();
        client.s3.close();
    }
}
