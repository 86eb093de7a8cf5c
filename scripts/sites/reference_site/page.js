// Starts Scalar. Everything that would call another host is off: fonts, telemetry, the assistant.
Scalar.createApiReference("#reference", {
  url: "openapi.json",
  theme: "none",
  layout: "modern",
  withDefaultFonts: false,
  telemetry: false,
  agent: { disabled: true },
  mcp: { disabled: true },
  showDeveloperTools: "never",
  hideClientButton: true,
  hideDarkModeToggle: true,
  darkMode: matchMedia("(prefers-color-scheme: dark)").matches,
  hiddenClients: true,
  documentDownloadType: "direct",
  orderSchemaPropertiesBy: "preserve",
  persistAuth: false,
  authentication: { preferredSecurityScheme: "api_key" },
});
