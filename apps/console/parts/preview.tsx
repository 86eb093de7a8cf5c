/** The request that a form sends, beside the form. */

import { isLocalStart } from "../data/api_base_url.ts";
import { Json } from "./json.tsx";
import { NEW_TAB, referenceUrl } from "./reference.tsx";

/**
 * The method, the path and the body of the request.
 * @param props.operation the operation in the reference, as in `referenceUrl`
 * @param props.body builds the body; its error is shown in place of the body
 */
export function Preview(props: { path: string; operation: string; body: () => unknown }) {
  const { path, operation } = props;
  return (
    <aside class="preview" aria-label="The request">
      <p class="preview-title">
        <span>
          <strong>POST</strong> <code>{path}</code>
        </span>
        {isLocalStart() && <a href={referenceUrl(operation)} {...NEW_TAB}>Reference</a>}
      </p>
      <Json value={previewOf(props.body)} label="Body of the request" />
    </aside>
  );
}

function previewOf(body: () => unknown): unknown {
  try {
    return body();
  } catch (error) {
    return (error as Error).message;
  }
}
