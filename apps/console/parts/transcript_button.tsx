/** The button that downloads the run of a seeded sandbox. */

import { useState } from "preact/hooks";
import { call, perform } from "../data/calls.ts";
import { failureOf } from "../data/failure.ts";
import { showFlash } from "../data/flash.ts";
import { saveText } from "../data/save_file.ts";

/** Reads the transcript of the sandbox in use, and saves it as a file. */
export function TranscriptButton({ seed }: { seed: string }) {
  const [running, setRunning] = useState(false);
  const download = async () => {
    if (running) return;
    setRunning(true);
    try {
      const text = await perform(call("sandbox", "transcript"));
      const name = `transcript-${seed.replaceAll(/[^A-Za-z0-9_-]+/g, "-")}.ndjson`;
      saveText(name, "application/x-ndjson", text);
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
