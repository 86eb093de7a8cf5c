/** The entry point of the console. It renders the page. */
/// <reference lib="dom" />
/// <reference lib="dom.iterable" />

import { render } from "preact";
import { App } from "./app.tsx";

render(<App />, document.querySelector("#console")!);
