/** The entry point of the page for payers. */
/// <reference lib="dom" />
/// <reference lib="dom.iterable" />

import { render } from "preact";
import { App } from "./app.tsx";

render(<App />, document.querySelector("#checkout")!);
