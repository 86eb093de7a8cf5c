/**
 * Tests that look inside the service end without a verdict where the service is another process.
 * Their names go to the file that `deno task test` reads at its end.
 */

/** The variable with the path of the file; `deno task test` sets it. */
export const INSIDE_FILE = "TEST_INSIDE_FILE";

/** Ends a test or step that needs the inside of a service in another process. */
export class LooksInside extends Error {
  override readonly name = "LooksInside";
}

type TestBody = (t: Deno.TestContext) => void | Promise<void>;

/** From this call on, a test or step that ends with `LooksInside` is recorded and does not fail. */
export function tellOfTheInside(): void {
  const register = Deno.test;
  const told = (...args: unknown[]) => {
    const changed = args.map((arg) =>
      typeof arg === "function"
        ? toldBody(arg as TestBody)
        : typeof arg === "object" && arg !== null && "fn" in arg
        ? { ...arg, fn: toldBody((arg as { fn: TestBody }).fn) }
        : arg
    );
    return (register as unknown as (...args: unknown[]) => void)(...changed);
  };
  Object.assign(Deno, { test: Object.assign(told, register) });
}

function toldBody(body: TestBody): TestBody {
  return async (t) => {
    try {
      await body(toldContext(t));
    } catch (error) {
      if (!(error instanceof LooksInside)) throw error;
      writeDown(t, error);
    }
  };
}

function toldContext(t: Deno.TestContext): Deno.TestContext {
  const step = (first: unknown, second?: unknown) => {
    const [definition, body] = typeof first === "string"
      ? [{ name: first }, second]
      : typeof first === "function"
      ? [{ name: first.name }, first]
      : [first as object, (first as { fn: TestBody }).fn];
    return t.step({
      ...definition as { name: string },
      fn: async (t) => {
        await toldBody(body as TestBody)(t);
      },
    });
  };
  return { ...t, name: t.name, origin: t.origin, step: step as Deno.TestContext["step"] };
}

function writeDown(t: Deno.TestContext, { message }: LooksInside) {
  const file = Deno.env.get(INSIDE_FILE);
  if (file === undefined) throw new Error(`${INSIDE_FILE} is not set`);
  const place = new URL(t.origin).pathname.replace(/^.*\/tests\//, "tests/");
  const name = [t.parent?.name, t.name].filter(Boolean).join(" > ");
  Deno.writeTextFileSync(file, `${place}: ${name} (${message})\n`, { append: true });
}
