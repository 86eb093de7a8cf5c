/** Safety of the console: its document does not contain the key, and it shows no text as markup. */

import assert from "node:assert/strict";
import type { Page } from "playwright-core";
import { consoleCase, moveClock, pasteKey } from "../support/console/console_case.ts";

/** Runs a script if it is read as markup. The quote breaks out of attributes. */
const MARKUP =
  `"><img src=x onerror="document.title='taken'"><script>document.title='taken'</script>`;

async function assertOnlyText(page: Page): Promise<void> {
  assert.notEqual(await page.title(), "taken");
  assert.equal(await page.locator('img:not([src="icon.svg"]), script:not([src])').count(), 0);
}

consoleCase("the key is in no document, and a forgotten one is dropped", async (step, place) => {
  const { page, requests, see, press } = await place.open("#/payments");
  await page.clock.install();
  await pasteKey(page, place.start.test_key);
  await step("the document does not contain the key", async () => {
    await see("No payments yet");
    assert.ok(!(await page.content()).includes(place.start.test_key));
    await press(/^API calls/);
    for (const tab of ["Request", "curl", "TypeScript"]) {
      await page.getByRole("tab", { name: tab }).click();
      assert.ok(!(await page.content()).includes(place.start.test_key), tab);
    }
  });
  await step("the page drops a forgotten key", async () => {
    await press("Forget key");
    assert.equal(await page.getByLabel("Test key").last().inputValue(), "");
    const before = requests.length;
    await moveClock(page, 60_000);
    assert.deepEqual(requests.slice(before), []);
  });
});

consoleCase("the console shows markup in every field as text", async (step, { enter, make }) => {
  const { page, region, heading, go, press } = await enter("#/payments/new");
  const fill = async (label: string | RegExp, text: string) =>
    await page.getByLabel(label, { exact: typeof label === "string" }).fill(text);

  await step("in the form, its preview and the API's errors", async () => {
    const fields = await page.locator("form input[type=text]").all();
    for (const field of fields) {
      const was = await field.inputValue();
      await field.fill(MARKUP);
      await press("Create payment");
      await page.locator(".fault, .notice.bad, .under-title").locator("visible=true").first()
        .waitFor();
      await assertOnlyText(page);
      if (page.url().endsWith("/new")) await field.fill(was);
      else await page.goBack();
    }
  });

  await step("in a stored payment, on every page that shows it", async () => {
    await go("payments");
    await heading("Payments").waitFor();
    await go("payments/new");
    await fill(/^Name/, MARKUP);
    await fill(/^Description/, MARKUP);
    await fill(/^Reference/, MARKUP);
    await press("Add metadata");
    await fill("Name 1", MARKUP.slice(0, 40));
    await fill("Value 1", MARKUP);
    await press("Create payment");
    await heading("19.99 EUR").waitFor();
    assert.equal(await page.locator(".details").getByText(MARKUP, { exact: true }).count(), 4);
    await page.getByText("payment.completed", { exact: true }).first().click();
    await region("Payload of payment.completed").waitFor();
    await assertOnlyText(page);
    await press(/^API calls/);
    for (const tab of ["Request", "Response", "curl", "TypeScript"]) {
      await page.getByRole("tab", { name: tab }).click();
      await assertOnlyText(page);
    }
    await go("payments");
    await page.getByRole("table").getByText(MARKUP).first().waitFor();
    await assertOnlyText(page);
  });

  await step("in an endpoint and in the URL of the page", async () => {
    const url = "http://127.0.0.1:4343/%3Cimg%20src=x%3E";
    const id = await make("webhook_endpoints", { url, description: MARKUP });
    for (
      const place of [
        "webhooks",
        `webhooks/${id}`,
        `payments/${encodeURIComponent(MARKUP)}`,
        `payments?status=${encodeURIComponent(MARKUP)}`,
        `${encodeURIComponent(MARKUP)}`,
        "payments/%",
      ]
    ) {
      await go(`${place}`);
      await page.getByRole("heading").first().waitFor();
      await page.waitForTimeout(100);
      await assertOnlyText(page);
    }
  });
});

consoleCase("the content security policy of the page", async (step, { origin, open }) => {
  // This server allows every origin, so only the page's own policy can block the request.
  await using server = Deno.serve(
    { hostname: "127.0.0.1", port: 0, onListen: () => {} },
    () => new Response("", { headers: { "Access-Control-Allow-Origin": "*" } }),
  );
  const foreign = `http://127.0.0.1:${server.addr.port}/`;
  const { page } = await open("", { provoked: /Content Security Policy|Trusted(HTML|Script)/ });
  await step("blocks scripts, styles, markup and requests to other origins", async () => {
    const let_in = await page.evaluate(async (foreign) => {
      const { body } = document;
      const tries: Record<string, () => unknown> = {
        script: () => {
          const script = document.createElement("script");
          script.textContent = "document.title = 'taken'";
          body.append(script);
          return document.title === "taken";
        },
        style: () => {
          body.setAttribute("style", "opacity: 0.5");
          return getComputedStyle(body).opacity !== "1";
        },
        markup: () => {
          body.innerHTML = "<p>x</p>";
          return true;
        },
        foreign: () => fetch(foreign).then(() => true),
      };
      const let_in: string[] = [];
      for (const [name, attempt] of Object.entries(tries)) {
        if (await Promise.try(attempt).catch(() => false)) let_in.push(name);
      }
      return let_in;
    }, foreign);
    assert.deepEqual(let_in, []);
  });
  await step("forbids framing", async () => {
    const { headers } = await fetch(`${origin}/console/`);
    assert.match(headers.get("Content-Security-Policy")!, /frame-ancestors 'none'/);
  });
});
