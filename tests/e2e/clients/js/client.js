// S3 as the SDK of JavaScript does it: commands on standard input, one answer a line.
import { createReadStream, createWriteStream } from "node:fs";
import { createInterface } from "node:readline";
import { pipeline } from "node:stream/promises";
import {
  DeleteObjectCommand,
  GetObjectCommand,
  RestoreObjectCommand,
  S3Client,
} from "@aws-sdk/client-s3";
import { Upload } from "@aws-sdk/lib-storage";

const [endpoint, Bucket, partSize] = process.argv.slice(2);
const client = new S3Client({ endpoint, region: "us-east-1", forcePathStyle: true, maxAttempts: 1 });

const commands = {
  async upload(Key, file, StorageClass) {
    const params = { Bucket, Key, StorageClass, Body: createReadStream(file) };
    await new Upload({ client, params, partSize: Number(partSize) }).done();
  },
  async download(Key, file) {
    const { Body } = await client.send(new GetObjectCommand({ Bucket, Key }));
    await pipeline(Body, createWriteStream(file));
  },
  async restore(Key) {
    const RestoreRequest = { Days: 1, GlacierJobParameters: { Tier: "Standard" } };
    await client.send(new RestoreObjectCommand({ Bucket, Key, RestoreRequest }));
  },
  async delete(Key) {
    await client.send(new DeleteObjectCommand({ Bucket, Key }));
  },
};

for await (const line of createInterface({ input: process.stdin })) {
  const [verb, ...words] = line.split("\t");
  try {
    await commands[verb](...words);
    console.log("ok");
  } catch (error) {
    console.log(`${error.$metadata?.httpStatusCode} ${error.name}: ${error.message}`.split("\n")[0]);
  }
}
