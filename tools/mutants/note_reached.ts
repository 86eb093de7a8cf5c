/** `deno task mutants` loads this module before a test file: it writes the mutants that were reached. */

addEventListener("unload", () => {
  const path = Deno.env.get("MUTANTS_REACHED");
  const { __stryker__: state } = globalThis as {
    __stryker__?: { mutantCoverage?: { static: Record<string, number> } };
  };
  if (path === undefined || !state?.mutantCoverage) return;
  Deno.writeTextFileSync(path, `${Object.keys(state.mutantCoverage.static).join(" ")}\n`, {
    append: true,
  });
});
