/** The places of an archive: a folder, or a bucket of a store that speaks S3. */

import { AwsClient } from "aws4fetch";
import { dirname, join } from "node:path";
import { CommandError, UsageError } from "./command_line.ts";

/** Stores files by their path. A file that is replaced is whole at every moment. */
export interface ArchiveStore {
  /** @throws {CommandError} if the file cannot be stored */
  put(path: string, bytes: Uint8Array<ArrayBuffer>): Promise<void>;
  /** Returns null if the file does not exist. Throws `CommandError` if it cannot be read. */
  get(path: string): Promise<Uint8Array | null>;
}

/** Time for one file of a bucket. */
const REQUEST_MS = 60_000;

/**
 * Opens a place: `s3://<bucket>/<prefix>`, or the path of a folder.
 * @param env reads the variables of Amazon's tools
 * @throws {UsageError} if a variable of a bucket is missing
 */
export function openArchiveStore(
  place: string,
  env: (name: string) => string | undefined,
): ArchiveStore {
  const bucket = /^s3:\/\/([a-z0-9][a-z0-9.-]{1,62})\/?(.*)$/.exec(place);
  if (bucket !== null) return openBucket(bucket[1]!, bucket[2]!.replace(/\/$/, ""), env);
  if (place.startsWith("s3:")) throw new UsageError(`--to "${place}" must be s3://BUCKET/PREFIX`);
  return openFolder(place);
}

function openFolder(folder: string): ArchiveStore {
  return {
    async put(path, bytes) {
      const file = join(folder, path);
      try {
        await Deno.mkdir(dirname(file), { recursive: true });
        using handle = await Deno.open(`${file}.new`, {
          write: true,
          create: true,
          truncate: true,
        });
        for (let rest = bytes; rest.length > 0;) rest = rest.subarray(await handle.write(rest));
        await handle.syncData();
        await Deno.rename(`${file}.new`, file);
      } catch (error) {
        throw new CommandError(`Cannot write ${file}: ${(error as Error).message}`);
      }
    },
    async get(path) {
      try {
        return await Deno.readFile(join(folder, path));
      } catch (error) {
        if (error instanceof Deno.errors.NotFound) return null;
        throw new CommandError(`Cannot read ${join(folder, path)}: ${(error as Error).message}`);
      }
    },
  };
}

function openBucket(
  bucket: string,
  prefix: string,
  env: (name: string) => string | undefined,
): ArchiveStore {
  const read = (name: string) => {
    const value = env(name);
    if (!value) throw new UsageError(`${name} is missing: --to s3://… needs it`);
    return value;
  };
  const region = env("AWS_REGION") ?? "us-east-1";
  const endpoint = env("AWS_ENDPOINT_URL") ?? `https://s3.${region}.amazonaws.com`;
  const client = new AwsClient({
    accessKeyId: read("AWS_ACCESS_KEY_ID"),
    secretAccessKey: read("AWS_SECRET_ACCESS_KEY"),
    service: "s3",
    region,
    retries: 3,
  });
  const urlOf = (path: string) =>
    `${endpoint.replace(/\/$/, "")}/${bucket}/${prefix && `${prefix}/`}${path}`;
  const send = async (path: string, init: RequestInit) => {
    const response = await client.fetch(urlOf(path), {
      ...init,
      signal: AbortSignal.timeout(REQUEST_MS),
    }).catch((error) => {
      throw new CommandError(`No response from ${urlOf(path)}: ${(error as Error).message}`);
    });
    const bytes = await response.bytes();
    if (response.ok || response.status === 404) return { status: response.status, bytes };
    const words = new TextDecoder().decode(bytes.subarray(0, 300));
    throw new CommandError(`${urlOf(path)}: ${response.status} ${words}`);
  };
  return {
    async put(path, bytes) {
      const { status } = await send(path, { method: "PUT", body: bytes });
      if (status === 404) throw new CommandError(`There is no bucket "${bucket}" at ${endpoint}`);
    },
    async get(path) {
      const { status, bytes } = await send(path, { method: "GET" });
      return status === 404 ? null : bytes;
    },
  };
}
