/**
 * A stand-in of Supabase's management API on loopback, with the routes that `supabase link`,
 * `secrets set` and `functions deploy --use-api` call. It keeps the secrets and the files of the
 * bundles, which arrive as multipart uploads.
 */

import { join } from "node:path";

/** A deployed function. */
interface DeployedFunction {
  /** Contents of the files, by their paths in the upload. */
  files: Map<string, string>;
  /** Further values from the CLI, such as `entrypoint_path` and `verify_jwt`. */
  metadata: Record<string, unknown>;
}

/** Paths that a deployment and `link` request. The CLI continues without a response. */
const IGNORED: ReadonlySet<string> = new Set([
  "GET ",
  "GET /config/storage",
  "GET /config/database/pooler",
]);

/** Starts the stand-in and writes the profile into a folder. */
export async function openManagementApi(folder: string) {
  /** The deployed functions, by slug. */
  const functions = new Map<string, DeployedFunction>();
  /** The secrets that `secrets set` has set. */
  const secrets = new Map<string, string>();
  /** Requests to routes that the stand-in does not have. */
  const unknown: string[] = [];
  const server = Deno.serve(
    { hostname: "127.0.0.1", port: 0, onListen: () => {} },
    async (request) => {
      const { pathname, searchParams } = new URL(request.url);
      const requested = `${request.method} ${pathname.replace(/^\/v1\/projects\/[a-z]{20}/, "")}`;
      if (requested === "POST /functions/deploy") {
        const slug = searchParams.get("slug")!;
        functions.set(slug, await readUpload(request));
        return Response.json(describe(slug, functions), { status: 201 });
      }
      if (requested === "POST /secrets") {
        for (const { name, value } of await request.json()) secrets.set(name, value);
        return new Response(null, { status: 201 });
      }
      await request.body?.cancel();
      // `link` sends this request to check the token.
      if (requested === "GET /api-keys") {
        return Response.json([{ name: "anon", type: "legacy", api_key: "x.y.z" }]);
      }
      if (requested === "PUT /functions") {
        return Response.json({
          functions: [...functions.keys()].map((slug) => describe(slug, functions)),
        });
      }
      if (requested === "GET /functions") return Response.json([]);
      if (!IGNORED.has(requested)) unknown.push(requested);
      return Response.json({ message: "not found" }, { status: 404 });
    },
  );
  const origin = `http://127.0.0.1:${server.addr.port}`;
  /** A CLI profile with the address of the stand-in. */
  const profile = join(folder, "profile.yaml");
  await Deno.writeTextFile(
    profile,
    `name: stand-in\napi_url: ${origin}\ndashboard_url: ${origin}\nproject_host: supabase.co\n`,
  );
  return { profile, functions, secrets, unknown, [Symbol.asyncDispose]: () => server.shutdown() };
}

async function readUpload(request: Request): Promise<DeployedFunction> {
  const files = new Map<string, string>();
  let metadata = {};
  for (const [name, value] of await request.formData()) {
    if (name === "metadata") metadata = JSON.parse(await textOf(value));
    else files.set((value as File).name, await textOf(value));
  }
  return { files, metadata };
}

async function textOf(value: FormDataEntryValue): Promise<string> {
  return typeof value === "string" ? value : await value.text();
}

function describe(slug: string, functions: ReadonlyMap<string, DeployedFunction>) {
  return {
    id: "00000000-0000-4000-8000-000000000001",
    slug,
    name: slug,
    version: 1,
    status: "ACTIVE",
    created_at: 1,
    updated_at: 1,
    ...functions.get(slug)!.metadata,
  };
}
