//! Credentials of clouds, hosts, databases, networks and vaults.

use super::{Rule, rule};

pub(super) const RULES: &[Rule] = &[
    rule(
        "AWS access key",
        &["akia", "asia", "abia", "acca", "a3t"],
        r"\b(?:A3T[A-Z0-9]|AKIA|ASIA|ABIA|ACCA)[A-Z0-9]{16}\b",
    )
    .min_entropy(3.0),
    rule(
        "AWS secret key",
        &["aws"],
        r"(?i)aws[\w .:-]{0,30}(?:secret|key)\S{0,20}\s*[:=]{1,2}>?\s*.?[A-Za-z0-9/+]{40}\b",
    )
    .min_entropy(3.0),
    rule("AWS model key", &["absk"], r"\bABSK[A-Za-z0-9+/]{60,}").min_entropy(3.0),
    rule("AWS model key", &["bedrock-api-key"], r"\bbedrock-api-key-[A-Za-z0-9+/]{20,}"),
    rule("signed URL", &["x-amz-signature"], r"(?i)X-Amz-Signature=[0-9a-f]{40,}"),
    rule("signed URL", &["x-goog-signature"], r"(?i)X-Goog-Signature=[0-9a-f]{40,}"),
    rule("signed URL", &["sig="], r"\bs[vte]=[\w:%-]+&(?:[\w:%=&-]*&)?sig=[\w%+/-]{30,}"),
    rule("Google API key", &["aiza"], r"\bAIza[\w-]{30,}").min_entropy(3.0),
    rule(
        "Google OAuth",
        &["gocspx", "ya29", "1//0"],
        r"\b(?:GOCSPX-[\w-]{20,}|ya29\.[\w-]{20,}|1//0[\w-]{30,})",
    ),
    rule("Firebase key", &["apa91"], r"\bAAAA[\w-]{7}:APA91[\w-]{60,}"),
    rule(
        "Azure key",
        &["accountkey", "sharedaccesskey", "sharedsecret", "accesskey"],
        r"(?i)\b(?:AccountKey|SharedAccessKey|SharedSecret|AccessKey)=[A-Za-z0-9+/]{30,}",
    )
    .min_entropy(3.0),
    rule("Azure secret", &["q~"], r"[\w~.-]{3}\dQ~[\w~.-]{31,34}").min_entropy(3.0),
    rule("Azure DevOps token", &["azdo"], r"\b[A-Za-z0-9]{76}AZDO[A-Za-z0-9]{4}\b"),
    rule("Alibaba key", &["ltai"], r"\bLTAI[A-Za-z0-9]{17,}").min_entropy(3.0),
    rule("Tencent key", &["akid"], r"\bAKID[A-Za-z0-9]{32}\b").min_entropy(3.0),
    rule("Yandex token", &["t1."], r"\bt1\.[\w-]{4,}={0,2}\.[\w-]{80,}").min_entropy(3.0),
    rule("Yandex key", &["aqvn", "yc"], r"\b(?:AQVN[\w-]{35,38}|YC[\w-]{38})\b").min_entropy(4.0),
    rule("DigitalOcean token", &["_v1_"], r"\bdo[opr]_v1_[a-f0-9]{40,}"),
    rule("Heroku key", &["hrku-"], r"\bHRKU-(?:AA[\w-]{50,}|[0-9a-f-]{36})"),
    rule(
        "Fly token",
        &["fo1_", "fm1a_", "fm1r_", "fm2_"],
        r"\b(?:fo1_[\w-]{40,}|fm(?:1[ar]|2)_[A-Za-z0-9+/]{60,})",
    ),
    rule("Netlify token", &["nfp_"], r"\bnfp_[A-Za-z0-9]{30,}"),
    rule("Vercel token", &["vcp_", "vck_", "vci_"], r"\bvc[pki]_[A-Za-z0-9]{40,}"),
    rule("Render key", &["rnd_"], r"\brnd_[A-Za-z0-9]{24,}").min_entropy(3.5),
    rule("Scalingo token", &["tk-us-"], r"\btk-us-[\w-]{40,}"),
    rule("Scaleway key", &["scw"], r"\bSCW[A-Z0-9]{17}\b").min_entropy(3.0),
    rule("Cloudflare origin key", &["v1.0-"], r"\bv1\.0-[a-f0-9]{24}-[a-f0-9]{100,}"),
    rule("Tailscale key", &["tskey-"], r"\btskey-[a-z]+-[\w-]{16,}"),
    rule("Defined Networking key", &["dnkey-"], r"\bdnkey-[\w=-]{20,}-[\w=-]{40,}"),
    rule("Supabase key", &["sbp_", "sb_secret_"], r"\b(?:sbp_[a-f0-9]{40}|sb_secret_[\w-]{24,})"),
    rule("PlanetScale token", &["pscale_"], r"\bpscale_(?:tkn|pw|oauth)_[\w=.-]{30,}"),
    rule("Neon key", &["napi_"], r"\bnapi_[a-z0-9]{50,}"),
    rule("ClickHouse key", &["4b1d"], r"\b4b1d[A-Za-z0-9]{38}\b").min_entropy(4.0),
    rule("Databricks token", &["dapi", "dose", "dkea"], r"\b(?:dapi|dose|dkea)[a-f0-9]{32}\b"),
    rule("Vault token", &["hvs.", "hvb.", "hvr."], r"\bhv[sbr]\.[\w-]{20,}").min_entropy(3.0),
    rule("Terraform token", &["atlasv1"], r"\b[A-Za-z0-9]{14}\.atlasv1\.[\w=-]{50,}"),
    rule("Pulumi token", &["pul-"], r"\bpul-[a-f0-9]{40}"),
    rule("Doppler token", &["dp."], r"\bdp\.(?:pt|st|ct|sa|scim|audit)\.[\w.-]{30,}"),
    rule("Infisical token", &["st."], r"\bst\.[a-f0-9-]{24,}\.[a-f0-9]{32}\.[a-f0-9]{32}"),
    rule(
        "1Password key",
        &["a3-"],
        r"\bA3-[A-Z0-9]{6}-(?:[A-Z0-9]{11}|[A-Z0-9]{6}-[A-Z0-9]{5})(?:-[A-Z0-9]{5}){3}\b",
    )
    .min_entropy(3.0),
    rule("1Password token", &["ops_eyj"], r"\bops_eyJ[A-Za-z0-9+/]{60,}"),
    rule("OpenShift token", &["sha256~"], r"\bsha256~[\w-]{43}").min_entropy(3.5),
    rule(
        "cluster join token",
        &["kubeadm"],
        r"\bkubeadm\b[^\n]{0,200}--token[ =][a-z0-9]{6}\.[a-z0-9]{16}\b",
    ),
    rule("Docker swarm token", &["swmtkn-"], r"\bSWMTKN-1-[a-z0-9]{40,}-[a-z0-9]{20,}"),
    rule(
        "Authress key",
        &[".acc"],
        concat!(
            r"\b(?:sc|ext|scauth|authress)_[A-Za-z0-9]{5,30}\.[A-Za-z0-9]{4,6}",
            r"\.acc[_-][A-Za-z0-9-]{10,32}\.[\w+/=-]{30,}"
        ),
    ),
    rule("Cloudinary URL", &["cloudinary://"], r"\bcloudinary://\d+:[\w-]{20,}"),
];
