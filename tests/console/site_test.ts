/**
 * The built console and the built page for payers: their sizes, their content security policies,
 * and their folders for any host.
 */

import assert from "node:assert/strict";
import { join } from "node:path";
import { gzipSync } from "node:zlib";
import { buildCheckoutSite } from "../../tools/site/checkout_site.ts";
import { buildConsoleSite } from "../../tools/site/console_site.ts";
import { readSiteFolder, writeHostedSite, writeSiteFolder } from "../../tools/site/site_folder.ts";
import { siteHandler, type StaticSite } from "../../tools/site/static_site.ts";
import { runCommand } from "../support/common/running_command.ts";
import { withTemporaryFolder } from "../support/common/temporary_folder.ts";
import { consoleCase, pasteKey } from "../support/console/console_case.ts";

const HOSTED = "https://ref.supabase.co/functions/v1";

/** The sites, and the most compressed bytes of a first visit. */
const SITES: [
  name: string,
  build: typeof buildConsoleSite,
  visits: [files: RegExp, max_bytes: number][],
][] = [
  ["Console", buildConsoleSite, [[/./, 125_000]]],
  ["Checkout", buildCheckoutSite, [[/^[^/]+$/, 60_000], [/^card\/|\.(css|svg)$/, 60_000]]],
];

for (const [name, build, visits] of SITES) {
  Deno.test(`build${name}Site() is light, names its files, and has no script of its own in a page`, async () => {
    const { files } = await build(`/x"><script>alert(1)</script>`);
    for (const [visited, max_bytes] of visits) {
      const weights = [...files].filter(([file]) => visited.test(file))
        .map(([file, { body }]) => [file, gzipSync(body).length] as const);
      const weight = weights.reduce((sum, [, bytes]) => sum + bytes, 0);
      console.log(`The site ${name} weighs ${weight} bytes compressed`, weights.join(" "));
      assert.ok(weight <= max_bytes, `${weight} bytes`);
    }
    const page = files.get("index.html")!.body as string;
    for (const [, file] of page.matchAll(/(?:href|src)="([^"]+)"/g)) {
      assert.ok(files.get(file!)!.body.length > 0, file);
    }
    // The address is escaped.
    assert.doesNotMatch(page, /<script>|<style|\sstyle=|\son\w+=|\{\{/);
  });
}

Deno.test("buildConsoleSite() writes one policy into the page and the header", async () => {
  const { files, headers } = await buildConsoleSite(HOSTED);
  const page = files.get("index.html")!.body as string;
  const policy = /http-equiv="Content-Security-Policy" content="([^"]*)"/.exec(page)![1]!;
  assert.equal(headers["Content-Security-Policy"], `${policy}; frame-ancestors 'none'`);
  assert.match(policy, /connect-src https:\/\/ref\.supabase\.co;/);
  assert.match(policy, /default-src 'none'/);
  assert.doesNotMatch(policy, /unsafe|\*|data:/);
  assert.ok(page.includes(`<meta name="api-base-url" content="${HOSTED}">`));
});

/** The policy of each document of the page for payers. */
const POLICIES = {
  "index.html":
    "default-src 'none'; script-src 'self'; connect-src 'self' https://ref.supabase.co; " +
    "style-src 'self'; img-src 'self' data:; form-action 'self'; frame-ancestors 'none'; " +
    "base-uri 'none'; require-trusted-types-for 'script'; trusted-types 'none'",
  "card/index.html": "default-src 'none'; script-src 'self' " +
    "https://js.stripe.com https://*.js.stripe.com; " +
    "frame-src https://js.stripe.com https://*.js.stripe.com https://hooks.stripe.com; " +
    "connect-src 'self' https://ref.supabase.co https://api.stripe.com; style-src 'self'; " +
    "img-src 'self' data:; form-action 'self'; frame-ancestors 'none'; base-uri 'none'",
};

Deno.test("buildCheckoutSite() has its policies as headers, and names Stripe in the card step only", async () => {
  const site = await buildCheckoutSite(HOSTED);
  for (const [name, policy] of Object.entries(POLICIES)) {
    assert.deepEqual(site.files.get(name)!.headers, { "Content-Security-Policy": policy });
  }
  for (const [name, { body }] of site.files) {
    const text = typeof body === "string" ? body : new TextDecoder().decode(body);
    if (!name.startsWith("card/")) assert.doesNotMatch(text, /stripe/i, name);
  }
  await withTemporaryFolder(async (folder) => {
    await writeHostedSite(site, join(folder, "hosted"));
    const headers = await Deno.readTextFile(join(folder, "hosted", "_headers"));
    for (const [name, policy] of Object.entries(POLICIES)) {
      const line = `  Content-Security-Policy: ${policy}\n`;
      const folder = `/${name.replace("index.html", "")}`;
      assert.ok(headers.includes(`\n/${name}\n${line}${folder}\n${line}`), headers);
    }
    await writeSiteFolder(site, join(folder, "packaged"));
    const read = await readSiteFolder(join(folder, "packaged"));
    assert.deepEqual(read.files.get("index.html")!.headers, site.files.get("index.html")!.headers);
  });
});

Deno.test("siteHandler() builds once, and again after a failure", async () => {
  const site: StaticSite = { files: new Map(), headers: {} };
  let builds = 0;
  const respond = siteHandler(
    "/x",
    () => ++builds === 1 ? Promise.reject(Error("no")) : Promise.resolve(site),
  );
  const get = (path: string) => respond(new Request(`http://127.0.0.1${path}`));
  const failed = await get("/x/a");
  assert.deepEqual([failed?.status, await failed?.text()], [503, "no\n"]);
  await get("/x/a");
  assert.equal((await get("/x/a"))?.status, 404);
  assert.equal(builds, 2);
  assert.equal(get("/xy"), null);
  assert.equal(respond(new Request("http://127.0.0.1/x/", { method: "POST" })), null);
  const moved = await get("/x");
  assert.deepEqual([moved?.status, moved?.headers.get("Location")], [308, "/x/"]);
});

/** Headers of a request, and whether its response is 304, compressed, or neither. */
const VISITS: [headers: Record<string, string>, response: "304" | "gzip" | "plain"][] = [
  [{}, "plain"],
  [{ "Accept-Encoding": "gzip, deflate, br, zstd" }, "gzip"],
  [{ "Accept-Encoding": "GZIP;q=0.5" }, "gzip"],
  [{ "Accept-Encoding": "br, gzip ; q=0.0" }, "plain"],
  [{ "Accept-Encoding": "identity, xgzip" }, "plain"],
  [{ "If-None-Match": "<tag>" }, "304"],
  [{ "If-None-Match": '"other", <tag>', "Accept-Encoding": "gzip" }, "304"],
  [{ "If-None-Match": "*" }, "304"],
  [{ "If-None-Match": '"other"' }, "plain"],
];

Deno.test("siteHandler() compresses a text, and sends an unchanged file once", async (t) => {
  const text = "body { color: green }\n".repeat(100);
  const site: StaticSite = {
    files: new Map([
      ["style.css", { type: "text/css; charset=utf-8", body: text }],
      ["font.woff2", { type: "font/woff2", body: new Uint8Array(2_000) }],
    ]),
    headers: { "X-Content-Type-Options": "nosniff" },
  };
  const respond = siteHandler("/x", () => Promise.resolve(site));
  const get = async (name: string, headers: Record<string, string> = {}, method = "GET") =>
    (await respond(new Request(`http://127.0.0.1/x/${name}`, { method, headers })))!;
  const tag = (await get("style.css")).headers.get("ETag")!;
  assert.match(tag, /^W\/"[\w-]{43}"$/);
  for (const [requested, expected] of VISITS) {
    await t.step(`${JSON.stringify(requested)} → ${expected}`, async () => {
      const headers = Object.fromEntries(
        Object.entries(requested).map(([name, value]) => [name, value.replace("<tag>", tag)]),
      );
      const { status, headers: sent, body } = await get("style.css", headers);
      const encoding = sent.get("Content-Encoding");
      assert.equal(status === 304 ? "304" : encoding ?? "plain", expected);
      assert.equal(sent.get("ETag"), tag);
      assert.equal(sent.get("Cache-Control"), "no-cache");
      assert.equal(sent.get("Vary"), "Accept-Encoding");
      assert.equal(sent.get("X-Content-Type-Options"), "nosniff");
      if (status === 304) return assert.equal(body, null);
      const unpacked = encoding ? body!.pipeThrough(new DecompressionStream("gzip")) : body;
      assert.equal(await new Response(unpacked).text(), text);
    });
  }
  await t.step("a font is not compressed", async () => {
    const { headers } = await get("font.woff2", { "Accept-Encoding": "gzip" });
    assert.deepEqual([headers.get("Content-Encoding"), headers.get("Vary")], [null, null]);
  });
  await t.step("HEAD has the headers and no body", async () => {
    const { status, headers, body } = await get("style.css", {}, "HEAD");
    assert.deepEqual([status, headers.get("ETag"), body], [200, tag, null]);
  });
  await t.step("another content has another tag", async () => {
    assert.notEqual((await get("font.woff2")).headers.get("ETag"), tag);
  });
});

Deno.test("deno task console refuses an address that must not get keys", async () => {
  for (
    const args of [[], ["--base-url", "http://example.com/functions/v1"], ["--base-url", "no"]]
  ) {
    const { code, stderr } = await buildFolder(args);
    assert.notEqual(code, 0);
    assert.match(stderr, /--base-url/);
  }
});

consoleCase("the folder of deno task console works on another host", async (step, place) => {
  await withTemporaryFolder(async (folder) => {
    const built = await buildFolder(["--base-url", place.start.base_url, "--out", folder]);
    assert.equal(built.code, 0, built.stderr);
    await using host = await serveFolder(folder);
    const { page } = await place.open("", { url: host.url });
    await step("a payment is created there", async () => {
      await pasteKey(page, place.start.test_key);
      await page.getByRole("link", { name: "Create payment" }).click();
      await page.getByRole("button", { name: "Create payment" }).click();
      await page.getByRole("heading", { name: "19.99 EUR" }).waitFor();
      await page.getByRole("region", { name: "Timeline" }).getByText("payment.completed").waitFor();
    });
    await step("its link to the documentation leads to the document of the API", async () => {
      const link = page.getByRole("link", { name: "OpenAPI document" });
      const response = await fetch((await link.getAttribute("href"))!);
      assert.equal(response.status, 200);
      assert.equal((await response.json()).openapi.split(".")[0], "3");
    });
    await step("a response's headers are readable there", async () => {
      await page.getByRole("button", { name: /^API calls/ }).click();
      await page.getByRole("tab", { name: "Response" }).click();
      assert.match(await page.getByRole("tabpanel").innerText(), /request-id: req_/);
    });
  });
});

/** Runs `deno task console`. */
const buildFolder = (args: string[]) =>
  runCommand({ args: [Deno.execPath(), "task", "console", ...args] });

/** A static host without settings for the console: files, types by extension, and `_headers`. */
async function serveFolder(folder: string) {
  const types: Record<string, string> = {
    html: "text/html",
    js: "text/javascript",
    css: "text/css",
    svg: "image/svg+xml",
    woff2: "font/woff2",
    txt: "text/plain",
  };
  const lines = (await Deno.readTextFile(join(folder, "_headers"))).trim().split("\n").slice(1);
  const headers = lines.map((line) => line.trim().split(/: (.*)/s).slice(0, 2) as [string, string]);
  const server = Deno.serve({ hostname: "127.0.0.1", port: 0, onListen: () => {} }, (request) => {
    const name = new URL(request.url).pathname.slice(1) || "index.html";
    const body = Deno.readFileSync(join(folder, name));
    const type = types[name.split(".").at(-1)!]!;
    return new Response(body, { headers: [...headers, ["Content-Type", type]] });
  });
  return {
    url: `http://localhost:${server.addr.port}/`,
    [Symbol.asyncDispose]: () => server.shutdown(),
  };
}
