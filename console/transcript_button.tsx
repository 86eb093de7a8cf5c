/** The button that downloads the run of a seeded sandbox. */

import { useState } from "preact/hooks";
import { call, perform } from "./calls.ts";
import { failureOf } from "./failure.ts";
import { showFlash } from "./flash.tsx";

/** Reads the transcript of the sandbox in use, and saves it as a file. */
export function TranscriptButton({ seed }: { seed: string }) {
  const [running, setRunning] = useState(false);
  const download = async () => {
    if (running) return;
    setRunning(true);
    try {
      const text = await perform(call("sandbox", "transcript"));
      const name = `transcript-${seed.replaceAll(/[^A-Za-z0-9_-]+/g, "-")}.ndjson`;
      save(name, text);
      showFlash(`Saved ${text.split("\n").length - 1} requests as ${name}.`);
    } catch (error) {
      const { message, code } = failureOf(error);
      showFlash(message, "bad", code ?? undefined);
    } finally {
      setRunning(false);
    }
  };
  return (
    <button type="button" class="plain" aria-disabled={running} onClick={download}>
      <span class="wide-only">Save the&nbsp;</span>transcript
    </button>
  );
}

/** Saves a text as a file of the browser. */
function save(name: string, text: string): void {
  const url = URL.createObjectURL(new Blob([text], { type: "application/x-ndjson" }));
  const link = document.createElement("a");
  link.href = url;
  link.download = name;
  link.click();
  URL.revokeObjectURL(url);
}
