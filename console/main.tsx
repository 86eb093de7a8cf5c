/** The entry point of the console. It continues a kept session and renders the page. */
/// <reference lib="dom" />
/// <reference lib="dom.iterable" />

import { render } from "preact";
import { App } from "./app.tsx";
import { storeSessions } from "./stored_session.ts";

storeSessions();
render(<App />, document.querySelector("#console")!);
