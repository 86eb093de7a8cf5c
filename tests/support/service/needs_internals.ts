/**
 * Tests that need internals of the service have no result if the service is another process. This
 * module records their names in a file, which `deno task test` reads at its end.
 */

/** The variable with the path of the file; `deno task test` sets it. */
export const UNTESTED_FILE = "TEST_UNTESTED_FILE";

/** Ends a test or step that needs internals of a service in another process. */
export class NeedsInternals extends Error {
  override readonly name = "NeedsInternals";
}

type TestBody = (t: Deno.TestContext) => void | Promise<void>;

/** After this call, a test or step that ends with `NeedsInternals` is recorded, and passes. */
export function recordUntested(): void {
  const register = Deno.test;
  const recording = (...args: unknown[]) => {
    const changed = args.map((arg) =>
      typeof arg === "function"
        ? recordingBody(arg as TestBody)
        : typeof arg === "object" && arg !== null && "fn" in arg
        ? { ...arg, fn: recordingBody((arg as { fn: TestBody }).fn) }
        : arg
    );
    return (register as unknown as (...args: unknown[]) => void)(...changed);
  };
  Object.assign(Deno, { test: Object.assign(recording, register) });
}

function recordingBody(body: TestBody): TestBody {
  return async (t) => {
    try {
      await body(recordingContext(t));
    } catch (error) {
      if (!(error instanceof NeedsInternals)) throw error;
      record(t, error);
    }
  };
}

function recordingContext(t: Deno.TestContext): Deno.TestContext {
  const step = (first: unknown, second?: unknown) => {
    const [definition, body] = typeof first === "string"
      ? [{ name: first }, second]
      : typeof first === "function"
      ? [{ name: first.name }, first]
      : [first as object, (first as { fn: TestBody }).fn];
    return t.step({
      ...definition as { name: string },
      fn: async (t) => {
        await recordingBody(body as TestBody)(t);
      },
    });
  };
  return { ...t, name: t.name, origin: t.origin, step: step as Deno.TestContext["step"] };
}

function record(t: Deno.TestContext, { message }: NeedsInternals) {
  const file = Deno.env.get(UNTESTED_FILE);
  if (file === undefined) throw new Error(`${UNTESTED_FILE} is not set`);
  const place = new URL(t.origin).pathname.replace(/^.*\/tests\//, "tests/");
  const name = [t.parent?.name, t.name].filter(Boolean).join(" > ");
  Deno.writeTextFileSync(file, `${place}: ${name} (${message})\n`, { append: true });
}
