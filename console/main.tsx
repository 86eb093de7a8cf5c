/** The console's entry: puts the page into the document. */
/// <reference lib="dom" />
/// <reference lib="dom.iterable" />

import { render } from "preact";
import { App } from "./app.tsx";

render(<App />, document.querySelector("#console")!);
